"""The font of icons has each icon that is named, and little else."""

from tests.edges import icon_font

MOST_BYTES = 60_000


def test_the_font_has_the_icons_that_are_named() -> None:
    named = icon_font.named_icons() & icon_font.icons(icon_font.UNFOLDS).keys()
    assert {
        "grid_on",
        "monitoring",
        "hub",
        "data_object",
        "visibility_off",
        "dock_to_right",
        "download",
        "check_small",
    } <= named
    ours = icon_font.icons(icon_font.OURS).keys()
    # After a new icon: python -m tests.edges.icon_font
    assert named <= ours
    assert len(ours) < 2 * len(named)  # an icon may have several names


def test_the_font_is_small() -> None:
    assert icon_font.OURS.stat().st_size < MOST_BYTES
