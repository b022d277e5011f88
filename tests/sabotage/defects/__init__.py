"""The defects, a file a room."""

from tests.sabotage.defects.agent import AGENT
from tests.sabotage.defects.answers import ANSWERS
from tests.sabotage.defects.clocks import CLOCKS
from tests.sabotage.defects.egress import EGRESS
from tests.sabotage.defects.gateway import GATEWAY
from tests.sabotage.defects.kit import KIT
from tests.sabotage.defects.meter import METER
from tests.sabotage.defects.money import MONEY
from tests.sabotage.defects.pages import PAGES
from tests.sabotage.defects.reaching import REACHING
from tests.sabotage.defects.reporting import REPORTING
from tests.sabotage.defects.spawner import SPAWNER
from tests.sabotage.defects.usage import USAGE
from tests.sabotage.defects.wires import WIRES

DEFECTS = [
    *KIT,
    *METER,
    *CLOCKS,
    *MONEY,
    *WIRES,
    *ANSWERS,
    *USAGE,
    *REACHING,
    *REPORTING,
    *EGRESS,
    *SPAWNER,
    *AGENT,
    *GATEWAY,
    *PAGES,
]
