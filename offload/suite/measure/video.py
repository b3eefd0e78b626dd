"""The workload `video`: nginx sends segments of a film and ranges of the whole, several clients at once."""

from __future__ import annotations

from offload.errors import RigError
from offload.host.base import Host
from offload.suite.measure.plan import Setting
from offload.suite.measure.programs import Nginx
from offload.suite.traffic import nginx, video, wrk
from offload.suite.traffic.nginx import Shop


class Video(Nginx):
    """As `nginx`, but asked for answers of `setting.size` bytes, every other one a range of a film."""

    def url(self, shop: Shop, setting: Setting) -> str:
        """The segment; wrk's script also asks for ranges."""
        assert setting.size is not None
        return shop.url(setting.size)

    def check(self, shop: Shop, setting: Setting) -> None:
        """Make segment and film, and look once that a segment and a range arrive as they are."""
        assert setting.size is not None
        if setting.size in self._sizes:
            return
        ours, theirs = self.testbed.end("dut"), self.testbed.end("peer")
        host: Host = ours.side.host
        nginx.stock(host, ours.at.folder, [setting.size, video.film(setting.size)])
        wanted = [video.Want(setting.size), video.Want(setting.size, video.film(setting.size), 1)]
        for seen, want in zip(
            video.fetched(theirs.side.host, shop, [wanted], theirs.at.ca)[0], wanted, strict=True
        ):
            if seen != want.seen():
                raise RigError(f"nginx served {seen} for {want.path}, wanted {want.seen()}")
        self._sizes.add(setting.size)

    def script(self, setting: Setting) -> str:
        """wrk's script: requests take turns between the segment and a range of the film."""
        assert setting.size is not None
        return wrk.SCRIPT + video.requests(setting.size)
