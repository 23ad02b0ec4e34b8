"""The folders and the amount of work of a comparison, the same for every side."""
import os
from dataclasses import dataclass

CPUS = "0,1"
NODE, TCP = "node", "tcp"


@dataclass(frozen=True)
class Setting:
    build: str     # meson's folder
    programs: str  # where bench/compare builds what meson does not
    quick: bool

    def ours(self, *path):
        return os.path.join(self.build, *path)

    def program(self, name):
        return os.path.join(self.programs, name)

    def count(self, number):
        """How many operations to run: a tenth when quick."""
        return str(max(number // 10, 1) if self.quick else number)

    @property
    def hidden(self):
        """The replacements for commands that are shown."""
        return {self.programs + "/": "", self.build + "/": "BUILD/"}
