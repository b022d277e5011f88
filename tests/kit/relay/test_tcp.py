"""The protocol relay to a host: plain and over TLS, with certificates that are checked."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest
from tests.kit.relay.raw import OK, Raw, answers, body_of
from tests.waiting import until

PLAIN = RelayRequest("GET", "/x", [])


def certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate for `name` that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(minutes=5))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = directory / "cert.pem", directory / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_file, key_file


@asynccontextmanager
async def over_tcp(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Raw, int]]:
    """A raw server on loopback, and its port."""
    raw = Raw(answers(OK))
    server = await asyncio.start_server(raw, "127.0.0.1", 0, ssl=tls)
    yield raw, server.sockets[0].getsockname()[1]
    server.close()
    await until(lambda: raw.gone == raw.connections)
    await server.wait_closed()


async def test_connection_is_reused_when_the_upstream_is_a_host() -> None:
    async with over_tcp() as (raw, port), ProtocolUpstream(f"http://127.0.0.1:{port}") as upstream:
        for _ in range(5):
            assert await body_of(upstream, PLAIN) == b"hello"
        assert raw.connections == 1
        assert f"host: 127.0.0.1:{port}\r\n".encode() in raw.heads[0]


async def test_connection_is_reused_when_it_is_encrypted(tmp_path: Path) -> None:
    cert_file, key_file = certificate(tmp_path, "localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert_file, key_file)
    trusting = ssl.create_default_context(cafile=str(cert_file))
    async with (
        over_tcp(server) as (raw, port),
        ProtocolUpstream(f"https://localhost:{port}", tls=trusting) as upstream,
    ):
        for _ in range(3):
            assert await body_of(upstream, PLAIN) == b"hello"
        assert raw.connections == 1


@pytest.mark.parametrize("named", ["localhost", "elsewhere.test"])
async def test_nothing_is_sent_when_the_certificate_does_not_fit(
    named: str, tmp_path: Path
) -> None:
    cert_file, key_file = certificate(tmp_path, named)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert_file, key_file)
    trusting = ssl.create_default_context(cafile=str(cert_file) if named != "localhost" else None)
    async with (
        over_tcp(server) as (raw, port),
        ProtocolUpstream(f"https://localhost:{port}", tls=trusting) as upstream,
    ):
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(PLAIN)
    assert (caught.value.code, caught.value.reason) == ("unavailable", "unreachable")
    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
    assert raw.heads == []


async def test_open_is_unavailable_when_the_host_refuses() -> None:
    async with over_tcp() as (_, port):
        pass
    async with ProtocolUpstream(f"http://127.0.0.1:{port}") as upstream:
        with pytest.raises(AlcoveError) as caught:
            await upstream.open(PLAIN)
    assert (caught.value.code, caught.value.reason) == ("unavailable", "unreachable")


async def test_base_path_comes_first_when_there_is_one() -> None:
    async with (
        over_tcp() as (raw, port),
        ProtocolUpstream(f"http://127.0.0.1:{port}", base_path="/api/") as upstream,
    ):
        await body_of(upstream, PLAIN)
    assert raw.heads[0].startswith(b"GET /api/x HTTP/1.1\r\n")
