"""Runs a CUDA program natively and through Torpor, and judges the difference."""

SAME = "same"
NATIVE_TOO = "fails natively too"
ONLY_NATIVE = "fails natively only"
PATIENCE_S = 60


def judge(native, remoted):
    """One of the words above, or what differs, which is a failure."""
    if native.status != 0:
        return NATIVE_TOO if remoted.status != 0 else ONLY_NATIVE
    if remoted.status != 0:
        return f"differs: status {remoted.status}, natively 0"
    return SAME if native.out == remoted.out else "differs: other output"


class Comparison:
    """Compares programs under one daemon."""

    def __init__(self, setting, results, daemon):
        self.setting, self.results, self.daemon = setting, results, daemon
        self.counts = {}

    def compare(self, program, patience=PATIENCE_S):
        """Whether there is no failure."""
        name = program.name
        native = self.setting.run(self.setting.native([program]), patience)
        remoted = self.setting.run(self.daemon.remoted([program]), patience)
        verdict = judge(native, remoted)
        self.results.add(f"program/{name}, natively and through Torpor",
                         [round(native.ms), round(remoted.ms)], "ms", modelled=False)
        self.results.say(f"{name:<28} {native.ms:>8.0f} {remoted.ms:>8.0f} ms  {verdict}")
        kind = verdict.partition(":")[0]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == "differs":
            self.results.fail(f"{name} {verdict}; natively: {native.tail()}; "
                              f"through Torpor: {remoted.tail()}")
        elif verdict != SAME:
            self._note_all(name, verdict, program, patience)
        return kind != "differs"

    def _note_all(self, name, verdict, program, patience):
        """Each check that fails natively is something that the emulated driver does otherwise."""
        ended = self.setting.run(self.setting.native([program]), patience,
                                 self.setting.environment(CHECK_GOES_ON="1"))
        failed = dict.fromkeys(line for line in ended.out.splitlines()
                               if line.startswith("FAIL "))
        for line in failed or [ended.tail()]:
            self.results.note(f"{name} {verdict}: {line}")
