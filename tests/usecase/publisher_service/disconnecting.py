"""DisconnectAccount on a replica."""

from publisher_service.application.disconnect_account import DisconnectAccount
from publisher_service.domain.account import Disconnection
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.replica import Replica


async def disconnect(replica: Replica, account: str, *, note: str = "", organization: str = "acme") -> Disconnection:
    use_case = DisconnectAccount(
        ledger=RequestLedger(replica.database, replica.clock),
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        vault=replica.vault,
        on_changed=lambda: None,
    )
    gone: Disconnection = await use_case(call("DisconnectAccount", organization_id=organization), account, note)
    return gone
