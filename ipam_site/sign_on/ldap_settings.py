"""What the site knows of LDAP without the packages of requirements-ldap.txt."""

import importlib.util

BACKEND = "ipam_site.sign_on.ldap_backend.Directory"
# The classes of django-auth-ldap, by the value of IPAM_LDAP_GROUP_TYPE: where the members of a group are.
GROUP_TYPES = {
    "member": "NestedGroupOfNamesType",
    "unique-member": "NestedGroupOfUniqueNamesType",
    "posix": "PosixGroupType",
    "active-directory": "NestedActiveDirectoryGroupType",
}


class DirectoryUnreachable(Exception):
    """The directory does not answer, or refuses the account of this site."""


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("ldap", "django_auth_ldap"))
