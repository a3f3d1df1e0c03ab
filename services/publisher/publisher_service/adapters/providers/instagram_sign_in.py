"""Chooses between Facebook Login and Instagram's own, by the address of the API."""

from dataclasses import dataclass

from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram_login import (
    OWN_DIALOG,
    InstagramLoginOAuth,
    InstagramLoginTokens,
    Login,
    login_at,
)
from publisher_service.adapters.providers.meta_login import MetaLogin
from publisher_service.adapters.providers.meta_tokens import (
    DIALOG,
    INSTAGRAM_SCOPES,
    FacebookLoginOAuth,
    FacebookLoginTokens,
    as_instagram,
)
from publisher_service.adapters.providers.oauth_application import Application


@dataclass(frozen=True, slots=True, kw_only=True)
class InstagramSignIn:
    app: Application | None = None
    # The server that exchanges the codes of Instagram Login, api.instagram.com.
    codes: HttpOrigin | None = None
    # Where people visit; empty: facebook.com, or instagram.com.
    dialog_url: str = ""
    # None: by the address of the API.
    login: Login | None = None

    def token_source(self, origin: HttpOrigin, limits: Limits, version: str) -> TokenSource | None:
        """Returns what refreshes the tokens that this API takes."""
        if self._login(origin) is Login.INSTAGRAM:
            return InstagramLoginTokens(origin, limits)
        if self.app is None:
            return None
        return FacebookLoginTokens(self._facebook(origin, limits, version, self.app), limits, as_instagram)

    def oauth(self, origin: HttpOrigin, limits: Limits, version: str) -> OAuth | None:
        app, codes = self.app, self.codes
        if app is None:
            return None
        if self._login(origin) is Login.FACEBOOK:
            return FacebookLoginOAuth(
                self._facebook(origin, limits, version, app),
                limits,
                as_instagram,
                app=app,
                version=version,
                scopes=INSTAGRAM_SCOPES,
                dialog_url=self.dialog_url or DIALOG,
            )
        if codes is None:
            return None
        return InstagramLoginOAuth(
            origin, codes, limits, app=app, version=version, dialog_url=self.dialog_url or OWN_DIALOG
        )

    def _login(self, origin: HttpOrigin) -> Login:
        return self.login or login_at(origin.url)

    def _facebook(self, origin: HttpOrigin, limits: Limits, version: str, app: Application) -> MetaLogin:
        return MetaLogin("Instagram", origin, limits, version=version, app=app)
