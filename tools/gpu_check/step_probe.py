"""Asks the driver, item by item (tools/probe)."""

import json

PATIENCE_S = 240


def run(setting, results):
    """An item that fails tells something of the driver, and is no failure of Torpor's."""
    ended = setting.run([setting.bin / "torpor-probe"], PATIENCE_S, setting.driver_environment())
    try:
        document = json.loads(ended.out)
    except ValueError:
        results.fail(f"torpor-probe: status {ended.status}: {ended.tail()}")
        return
    for item in document["items"]:
        results.add(f"probe/{item['name']}/duration", [item["seconds"]], "s", modelled=False)
        if item["error"]:
            # The emulator's answers are known; a real driver's are what is asked for.
            tell = results.fail if setting.rehearse else results.note
            tell(f"item {item['name']}: {item['error']}")
    for record in document["results"]:
        added = results.add(f"probe/{record['name']}", record["values"], record["units"],
                            record["error"])
        results.show(added)
