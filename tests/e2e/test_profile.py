"""A user is invited, sets a password by the link, signs in, and chooses a time zone."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from claims.models import Membership
from pools.models import Preferences
from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "a password of the tests"


def test_a_vm_owner_is_invited_and_signs_in(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/auth/user/")
    page.locator("a[href$='/auth/user/add/']").first.click()
    page.fill("[name=username]", "ada")
    page.locator("[name=add_namespace]").click()
    page.locator("#add_namespace-names option").first.wait_for(state="attached")
    names = page.locator("#add_namespace-names option").evaluate_all("all => all.map(o => o.value)")
    name = str(names[0])
    page.fill("[name=add_namespace]", name)
    page.locator("[name=_save]").click()
    link = page.locator("#link").inner_text()
    ada = User.objects.get(username="ada")
    assert Membership.objects.get(user=ada).namespaces == [name.partition("/")[2]]

    page.context.clear_cookies()
    page.goto(link)
    assert link.rpartition("/set-password/")[2] not in page.url  # the token is no part of it
    page.fill("[name=new_password1]", PASSWORD)
    page.fill("[name=new_password2]", PASSWORD)
    page.get_by_role("button", name="Set password").click()
    page.wait_for_url("**/admin/login/")
    page.fill("[name=username]", "ada")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/admin/")
    expect(page.get_by_role("heading", name="Your VMs")).to_be_visible()


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_the_profile_has_a_time_zone(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/profile/")
    assert not visit.scrolls_sideways()
    page.select_option("[name=time_zone]", "Asia/Tokyo")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("(Asia/Tokyo)").wait_for()
    assert Preferences.objects.get().time_zone == "Asia/Tokyo"
    expect(page.get_by_text("every namespace")).to_be_visible()
    visit.open("/admin/history/")
    expect(page.get_by_text("Time (Asia/Tokyo)")).to_be_visible()


def test_a_picked_time_is_written_where_it_can_be_changed(visit: Visit) -> None:
    page = visit.page
    visit.open("/admin/history/")
    page.fill("[name=at_picked]", "2026-01-02T03:04")
    assert page.input_value("[name=at]") == "2026-01-02 03:04"
    page.fill("[name=at]", "half past noon")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".cad-error")).to_be_visible()
    assert page.input_value("[name=at]") == "half past noon"
