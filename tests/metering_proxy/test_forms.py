"""Forms: read as clients write them, and refused where another reader could find something else in them."""

import pytest
from multidict import CIMultiDict

from infra.kit.errors import AlcoveError
from metering_proxy.wires import forms
from tests.metering_proxy import recordings
from tests.metering_proxy.house import House
from tests.scripted import ScriptedProvider


def _renamed(disposition: bytes) -> bytes:
    """A form whose recording is introduced in other words."""
    return recordings.form(b"x").replace(b'name="file"; filename="a.wav"', disposition)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", recordings.FORM_TYPE),
        (b"{}", "application/json"),
        (recordings.form(b"x"), "multipart/form-data"),
        (recordings.form(b"x"), "multipart/form-data; boundary=other"),
        (recordings.form(b"x")[:-20], recordings.FORM_TYPE),
        (recordings.form(b"x", model="a").replace(b'"file"', b'"model"'), recordings.FORM_TYPE),
        (recordings.form(b"x").replace(b"; name=", b"; n="), recordings.FORM_TYPE),
        (recordings.form(b"x"), recordings.FORM_TYPE + "; boundary=other"),
        (recordings.form(b"x"), "multipart/form-data; xboundary=other; boundary=b0undary"),
        (recordings.form(b"x"), "multipart/form-data; boundary=b0undary; boundary*=other"),
        (_renamed(b'name="file"; name="model"'), recordings.FORM_TYPE),
        (_renamed(b'filename=x name="junk"; name="file"'), recordings.FORM_TYPE),
        (_renamed(b"name=\"file\"; filename*=UTF-8''x"), recordings.FORM_TYPE),
        (_renamed(b'name="f\\"ile"'), recordings.FORM_TYPE),
        (
            _renamed(b'name="file"\r\ncontent-disposition: form-data; name="x"'),
            recordings.FORM_TYPE,
        ),
        (_renamed(b'name="file"\r\ncontent-transfer-encoding: base64'), recordings.FORM_TYPE),
        (_renamed(b'name="file"\r\n folded: x'), recordings.FORM_TYPE),
        (recordings.form(b"x\n--b0undary\r\n"), recordings.FORM_TYPE),
        (recordings.form(b"x") + recordings.form(b"y"), recordings.FORM_TYPE),
    ],
    ids=[
        "empty",
        "json",
        "no boundary",
        "other boundary",
        "cut",
        "twice",
        "no name",
        "two boundaries",
        "boundary in another's name",
        "extended boundary",
        "two names",
        "name in a file's name",
        "extended file name",
        "escaped name",
        "two dispositions",
        "transfer encoding",
        "folded line",
        "boundary within",
        "form behind the form",
    ],
)
def test_form_is_refused_when_another_could_read_it_otherwise(
    body: bytes, content_type: str
) -> None:
    with pytest.raises(AlcoveError) as caught:
        forms.read(body, content_type)
    assert caught.value.code == "invalid"


@pytest.mark.parametrize(
    "content_type",
    [
        recordings.FORM_TYPE,
        'Multipart/Form-Data;boundary="b0undary"',
        " multipart/form-data ; Boundary=b0undary ",
    ],
)
def test_form_is_read_as_clients_write_it(content_type: str) -> None:
    body = recordings.form(b"\r\n\xff", **{"timestamp_granularities[]": "word"})
    body = body.replace(b'"a.wav"', '"Größe; a=1.wav"'.encode())
    form = forms.read(body, content_type)
    assert form.file("file") == b"\r\n\xff"
    assert [name for name, field in form.fields.items() if field.is_file] == ["file"]
    assert (form.value("model"), form.value("timestamp_granularities[]")) == ("whisper-1", "word")


async def test_form_with_two_content_types_is_refused(
    house: House, scripted: ScriptedProvider
) -> None:
    await house.connect(scripted, "openai")
    tenant = await house.tenant("plus")
    body, types = recordings.form(recordings.wav(1)), [recordings.FORM_TYPE, "multipart/x"]
    headers = CIMultiDict([("authorization", f"Bearer {tenant.key}")])
    for content_type in types:
        headers.add("content-type", content_type)
    async with tenant.session.post(
        "http://localhost/v1/audio/transcriptions", data=body, headers=headers
    ) as answer:
        assert answer.status == 400
    assert scripted.requests == []
