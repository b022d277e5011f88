"""What stands in a request for tokens that are not in it: by chats, responses and messages."""

from typing import Any

PARTS: list[dict[str, Any]] = [
    {"type": "file", "file": {"file_id": "f"}},
    {"type": "video_url", "video_url": {"url": "https://example.org/film"}},
    {"type": "of_another_day", "id": "x"},
    {"image_url": {"url": "https://example.org/picture"}},
]
ITEMS: list[dict[str, Any]] = [
    {"type": "image_generation_call", "id": "ig_1"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},
    {"type": None, "id": "msg_1"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "compaction", "id": "c_1"},
]
BLOCK = {"type": "container_upload", "file_id": "f"}
