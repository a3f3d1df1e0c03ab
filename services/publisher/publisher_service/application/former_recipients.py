"""Finds mails that wait for people who have been taken off the lists meanwhile."""

from collections.abc import Iterable

from publisher_service.adapters.postgres.deliveries import notifications_of
from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.recipient_lists import brands_of_accounts, find_recipient_lists
from publisher_service.domain.delivery import MAIL, Delivery
from publisher_service.domain.notification import ABOUT_ACCOUNTS, NotificationKind
from publisher_service.domain.recipients import Lists, concerned, is_on
from servicekit.pg.database import Transaction


async def to_former_recipients(tx: Transaction, deliveries: Iterable[Delivery], lists: Lists) -> set[Key]:
    """Returns the keys of mails whose address is on none of the lists that they concern.

    `lists` are those through which the mails were addressed. A test names its address, and is sent all the same.
    """
    mails = [each for each in deliveries if each.receiver == MAIL and each.kind is not NotificationKind.TEST]
    missing = [each for each in mails if not is_on(each.email, lists, [each.list_key])]
    if not missing:
        return set()
    about = await notifications_of(tx.connection, missing)
    accounts = {each.account_key for facts in about.values() for each in facts if each.kind in ABOUT_ACCOUNTS}
    brands = await brands_of_accounts(tx.connection, accounts)
    others = {
        mail.key: {key for each in about[mail.key] for key in concerned(each, brands.get(each.account_key, ()))}
        for mail in missing
    }
    found = await find_recipient_lists(tx.connection, (key for keys in others.values() for key in keys))
    return {mail.key for mail in missing if not is_on(mail.email, found, others[mail.key])}
