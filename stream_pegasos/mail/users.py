"""Models of users with a folder; each begins as a copy of the common model when its user first teaches."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stream_pegasos.features.vectors import VectorsError
from stream_pegasos.learners.files import write_model
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.mail.verdict import Verdicts
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner

__all__ = ["UserModels"]

log = logging.getLogger(__name__)

FILE = "mail.safetensors"
BYTES_OF_FEATURE = 48  # with two classes
MOST_BYTES = 1 << 30  # of models in memory: one of a small mail system takes about 2 MB, a large one 20 MB

# Makes a learner of a model, its checkpoints and the progress in the newest one.
Make = Callable[[TextClassifier, Checkpoints, Any], LiveLearner]


@dataclass(eq=False)
class _Loaded:
    learner: LiveLearner
    n_bytes: int
    n_using: int = 0
    is_changed: bool = False


class UserModels:
    """The common model, and the models of users, each in its own folder with its checkpoint and its journal.

    A user has a model only if the folder named by `folder_name` exists: any client can name any user, and must not
    create files. Other users have the common model, and teach it if `learns_common` is true. A model is loaded when it
    is needed. The least recently used models are closed, so that all together take at most `most_bytes`; a model takes
    about as much memory as the size of its file.
    """

    def __init__(
        self,
        common: LiveLearner,
        folder: Path | None = None,
        make: Make = LiveLearner,
        most_bytes: int = MOST_BYTES,
        checkpoints: Callable[[Path], Checkpoints] = Checkpoints,
        learns_common: bool = False,
    ) -> None:
        self.common, self._learns_common = common, learns_common
        self._folder, self._make, self._most_bytes, self._checkpoints = folder, make, most_bytes, checkpoints
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._turning = asyncio.Lock()  # held while a model is loaded or closed
        self._released = asyncio.Event()

    def may_teach(self, user: str) -> bool:
        """Whether a user may teach a model; `""` is no user, and teaches the common model."""
        return not user or self._learns_common or self._folder is None or self._own(user, True) is not None

    def _own(self, user: str, teaches: bool) -> str | None:
        """The name of a user's folder, if it has a model or the user is about to teach one."""
        if self._folder is None or not user:
            return None
        name = folder_name(user)
        try:
            with os.scandir(self._folder / name) as files:
                return name if teaches or name in self._loaded or any(files) else None
        except OSError:  # it does not exist, or the name is too long
            return None

    @asynccontextmanager
    async def serving(self, user: str, teaches: bool = False) -> AsyncIterator[LiveLearner]:
        """The learner for a user, `""` for no user; it stays in memory meanwhile. A user who teaches gets a model at
        this moment. An OSError if the model cannot be loaded.
        """
        name = self._own(user, teaches)
        if name is None:
            yield self.common
            return
        loaded = self._loaded.get(name) or await self._load(name)
        self._loaded.move_to_end(name)
        loaded.n_using += 1
        loaded.is_changed |= teaches
        try:
            yield loaded.learner
        finally:
            loaded.n_using -= 1
            self._released.set()

    async def _load(self, name: str) -> _Loaded:
        async with self._turning:
            n_bytes = self._n_bytes(name)
            while name not in self._loaded and self._loaded and self._n_bytes_loaded() + n_bytes > self._most_bytes:
                idle = next((other for other, loaded in self._loaded.items() if not loaded.n_using), None)
                if idle is None:
                    self._released.clear()
                    await self._released.wait()
                else:
                    await self._close(idle)
            if name not in self._loaded:
                learner = await asyncio.to_thread(self._resumed, name)
                learner.start()
                self._loaded[name] = _Loaded(learner, n_bytes, is_changed=learner.n_learned_again > 0)
            return self._loaded[name]

    def _n_bytes_loaded(self) -> int:
        return sum(loaded.n_bytes for loaded in self._loaded.values())

    def _n_bytes(self, name: str) -> int:
        """The memory that the model of a user takes, or the copy of the common model with which it begins."""
        assert self._folder is not None
        with suppress(OSError):
            return (self._folder / name / FILE).stat().st_size
        n_features: int = self.common.model.n_features
        return BYTES_OF_FEATURE * n_features

    def _resumed(self, name: str) -> LiveLearner:
        assert self._folder is not None
        checkpoints = self._checkpoints(self._folder / name / FILE)
        checkpoints.claim()
        try:
            model, progress = self._resume_checkpoints(checkpoints) or (self._begun(checkpoints.path), None)
            return self._make(Verdicts().check(model), checkpoints, progress)
        except BaseException as error:
            checkpoints.release()
            if isinstance(error, ValueError):
                log.error("the model of a user cannot be loaded: %s", error)
                raise OSError("the model of the user cannot be loaded") from None
            raise

    def _resume_checkpoints(self, checkpoints: Checkpoints) -> tuple[Model, Any] | None:
        """The model of a user; if its file only names its vectors, it gets those of the common model."""
        try:
            return checkpoints.resume()
        except VectorsError:
            return checkpoints.resume(self.common.model.vector_source)

    def _begun(self, path: Path) -> TextClassifier:
        """A copy of the common model. It is written first: a journal follows it, and the common model changes."""
        with self.common.monitor.lock:
            model = copy.deepcopy(self.common.model)
        write_model(path, partial(model.snapshot, None))
        return model

    async def _close(self, name: str) -> None:
        loaded = self._loaded.pop(name)
        await loaded.learner.finish()
        with suppress(OSError):  # the error was logged
            await asyncio.to_thread(loaded.learner.close, loaded.is_changed)

    async def close(self) -> None:
        """Close all models of users."""
        async with self._turning:
            for name in [*self._loaded]:
                await self._close(name)


def folder_name(user: str) -> str:
    """The name of a user's folder; the user's name can be decoded from it.

    Examples
    --------

    >>> from stream_pegasos.mail.users import folder_name
    >>> folder_name("ann@example.org"), folder_name("../etc"), folder_name("..")
    ('ann@example.org', '%2E.%2Fetc', '%2E.')

    """
    name = quote(user, safe="@+=", errors="surrogateescape")
    return f"%2E{name[1:]}" if name.startswith(".") else name
