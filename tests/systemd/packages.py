"""Debian packages with other versions than the tree's, built from a copy of the tree, to upgrade a
machine to.
"""
import os
import pathlib
import re
import shutil

from machines import run

BUILD_S = 1800


def version_of(deb):
    return run("dpkg-deb", "-f", str(deb), "Version").stdout.strip()


class Copy:
    """A copy of the tree, from which one version after another is built."""

    def __init__(self, tree, folder):
        self.folder = pathlib.Path(folder)
        self.source = self.folder / "pwcd"
        self.source.mkdir(parents=True)
        for name in run("git", "-C", str(tree), "ls-files", "-co", "--exclude-standard",
                        "-z").stdout.split("\0"):
            if name and (tree / name).exists():
                (self.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, self.source / name, follow_symlinks=False)

    def change(self, path, pattern, to):
        """Replaces the only match of the pattern in a file of the copy."""
        file = self.source / path
        text, count = re.subn(pattern, to, file.read_text(), flags=re.M)
        if count != 1:
            raise OSError(f"{path}: {pattern} is there {count} times")
        file.write_text(text)

    def build(self, version, into):
        """Builds the packages of this version, in a folder of their own under `into`."""
        self.change("meson.build", r"^  version: '[^']*'", f"  version: '{version}'")
        self.change("clientlib/meson.build", r"^  version: '[^']*', soversion",
                    f"  version: '{version}', soversion")
        changelog = self.source / "debian" / "changelog"
        entry = changelog.read_text().split("\n\n", 1)[0]
        changelog.write_text(re.sub(r"\([^)]*\)", f"({version})", entry, count=1) +
                             f"\n\n  * Version {version}, of the trial.\n\n"
                             " -- the trial <trial@localhost>  Sun, 22 Nov 2026 12:00:00 +0000\n\n" +
                             changelog.read_text())
        (self.source / "debian" / "debhelper-build-stamp").unlink(missing_ok=True)
        run("dpkg-buildpackage", "-us", "-uc", "-b", "-nc", cwd=self.source, timeout=BUILD_S,
            env={**os.environ, "DEB_BUILD_OPTIONS": "nocheck noautodbgsym"})
        built = into / version
        built.mkdir(parents=True, exist_ok=True)
        for deb in self.folder.glob(f"*_{version}_*.deb"):
            shutil.copy(deb, built)
