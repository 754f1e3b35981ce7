"""Teleoperation devices without hardware: a HID puck, servos behind a pseudo-terminal, SDL's own virtual pad."""

from __future__ import annotations

import ctypes
import os
import pty
import struct
import threading
import tty
from collections import deque
from pathlib import Path
from typing import Any


class Puck:
    """What `hid.device()` gives, filled by a test; `unplugged` makes it fail as a pulled cable does."""

    def __init__(self) -> None:
        self.reports: deque[bytes] = deque()
        self.unplugged = False

    def read(self, size: int, timeout_ms: int) -> list[int]:
        if self.unplugged:
            raise OSError("read error")
        return list(self.reports.popleft()) if self.reports else []

    def move(self, *axes: int) -> None:
        """Translation and rotation in counts, as two reports."""
        self.reports.append(b"\x01" + struct.pack("<3h", *axes[:3]))
        self.reports.append(b"\x02" + struct.pack("<3h", *axes[3:]))

    def press(self, buttons: int) -> None:
        self.reports.append(bytes([3, buttons, 0]))

    def close(self) -> None: ...


class Servos:
    """Dynamixel servos on a pseudo-terminal that answer sync reads of positions. `ticks` by id; `silent` is a fault."""

    def __init__(self, ticks: dict[int, int]) -> None:
        from dynamixel_sdk import PacketHandler

        self.ticks = ticks
        self.silent = False
        self._crc = PacketHandler(2.0).updateCRC
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        tty.setraw(self._master)
        self.port = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        kept = b""
        while True:
            try:
                kept = self._answered(kept + os.read(self._master, 256))
            except OSError:  # `end` has closed it, also in the middle of an answer
                return

    def _answered(self, kept: bytes) -> bytes:
        """Each whole packet answered; what is left is the beginning of the next."""
        start = kept.find(b"\xff\xff\xfd\x00")
        while start >= 0 and len(kept) >= start + 7:
            length = struct.unpack_from("<H", kept, start + 5)[0]
            if len(kept) < start + 7 + length:
                break
            packet, kept = kept[start : start + 7 + length], kept[start + 7 + length :]
            self._answer(packet)
            start = kept.find(b"\xff\xff\xfd\x00")
        return kept

    def _answer(self, packet: bytes) -> None:
        if self.silent or packet[7] != 0x82:  # sync read
            return
        for number in packet[12:-2]:
            body = bytes([0xFF, 0xFF, 0xFD, 0, number, 8, 0, 0x55, 0]) + struct.pack("<i", self.ticks[number])
            crc = self._crc(0, list(body), len(body))
            os.write(self._master, body + struct.pack("<H", crc))

    def end(self) -> None:
        os.close(self._slave)
        os.close(self._master)
        self._thread.join(timeout=2)


class Guid(ctypes.Structure):
    """SDL_JoystickGUID: sixteen bytes."""

    _fields_ = [("data", ctypes.c_uint8 * 16)]


class VirtualPad:
    """A joystick that exists in SDL alone: raw axes from -1 to 1, raw buttons, and the cable. Its raw layout is that of
    the real pad that SDL's own table has under `guid`; None for a joystick that the table does not have.

    Triggers that are axes rest at -1, as the kernel's drivers give them. `axis` and `button` take raw numbers, `press`
    and `push` SDL's names.
    """

    XBOX_360 = "030000005e0400008e02000014010000"  # raw: triggers are axes 2 and 5, right bumper button 5, start 7

    def __init__(self, guid: str | None = XBOX_360, *, silent_triggers: bool = False) -> None:
        import pygame
        from pygame._sdl2 import controller

        folder = Path(pygame.__file__).parent.parent / "pygame.libs"
        library = next(path for path in folder.iterdir() if path.name.startswith("libSDL2-2"))
        self._sdl: Any = ctypes.CDLL(str(library))
        self._sdl.SDL_JoystickOpen.restype = ctypes.c_void_p
        self._sdl.SDL_JoystickGetDeviceGUID.restype = Guid
        self._sdl.SDL_GameControllerMappingForGUID.restype = ctypes.c_char_p
        self._sdl.SDL_GameControllerMappingForGUID.argtypes = [Guid]
        self._sdl.SDL_GameControllerAddMapping.argtypes = [ctypes.c_char_p]
        for name in ("SDL_JoystickSetVirtualAxis", "SDL_JoystickSetVirtualButton"):
            getattr(self._sdl, name).argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int16]
        pygame.display.init()
        pygame.joystick.init()
        controller.init()
        game_controller, unknown = 1, 0
        kind = unknown if guid is None else game_controller
        self.number = self._sdl.SDL_JoystickAttachVirtual(kind, 6, 17, 0)
        assert self.number >= 0
        self.layout: dict[str, str] = {}
        if guid is not None:
            self._lay_out(guid)
        self._pad = self._sdl.SDL_JoystickOpen(self.number)
        for number in range(6):  # SDL's own virtual pad rests at -1 where its own layout has the triggers
            self.axis(number, 0.0)
        for trigger in ("lefttrigger", "righttrigger"):
            if not silent_triggers and self.layout.get(trigger, "").startswith("a"):
                self.push(trigger, 0.0)

    def _lay_out(self, guid: str) -> None:
        """Give this joystick the mapping that SDL has for a real pad."""
        known = self._sdl.SDL_GameControllerMappingForGUID(Guid((ctypes.c_uint8 * 16)(*bytes.fromhex(guid))))
        assert known is not None, f"SDL has no pad {guid}"
        own = bytes(self._sdl.SDL_JoystickGetDeviceGUID(self.number).data).hex()
        parts = [part for part in known.decode().split(",")[2:] if not part.startswith(("crc:", "hint:", "platform:"))]
        assert self._sdl.SDL_GameControllerAddMapping(f"{own},Virtual,{','.join(parts)},".encode()) >= 0
        self.layout = dict(part.split(":") for part in parts if part)

    def axis(self, number: int, value: float) -> None:
        self._sdl.SDL_JoystickSetVirtualAxis(self._pad, number, round(32767 * value))

    def button(self, number: int, down: bool) -> None:
        self._sdl.SDL_JoystickSetVirtualButton(self._pad, number, int(down))

    def press(self, name: str, down: bool = True) -> None:
        """A button by its name in SDL's mapping, such as "rightshoulder"."""
        self.button(int(self.layout[name].removeprefix("b")), down)

    def push(self, name: str, value: float) -> None:
        """A stick from -1 to 1, or a trigger from 0 to 1, by its name in SDL's mapping, as the raw value it has."""
        place = self.layout[name]
        if place.startswith("b"):
            self.button(int(place[1:]), value > 0.5)
        else:
            self.axis(int(place[1:]), 2 * value - 1 if "trigger" in name else value)

    def unplug(self) -> None:
        self._sdl.SDL_JoystickDetachVirtual(self.number)
