"""Imports of VMs, port groups and waves; what the roles may do with them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import pghistory.utils
import pgtrigger.compiler
import pgtrigger.migrations
from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

import claims.models.fields
from pools import sql

_SEE = ["view_vmimport", "view_wave"]
_IMPORT = ["view_vmimport", "add_vmimport", "change_vmimport"]
_OPERATE = [*_IMPORT, "delete_vmimport", "add_wave", "change_wave", "delete_wave"]


def give_to_roles(apps: Apps, _schema_editor: object) -> None:
    """Operators and administrators import; a vm-owner does so for namespaces of their own."""
    config = apps.get_app_config("claims")
    config.models_module = True  # what create_permissions looks for
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = None
    permission = apps.get_model("auth", "Permission")
    group = apps.get_model("auth", "Group")
    for role, names in (
        ("viewer", _SEE),
        ("operator", _SEE + _OPERATE),
        ("administrator", _SEE + _OPERATE),
        ("vm-owner", _IMPORT),
    ):
        found, _ = group.objects.get_or_create(name=role)
        found.permissions.add(
            *permission.objects.filter(codename__in=names, content_type__app_label="claims")
        )


class Migration(migrations.Migration):
    dependencies = [
        ("claims", "0007_workloads"),
        ("pools", "0014_one_statement"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="VMImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "target",
                    models.CharField(
                        choices=[("ippool", "IPPool entries"), ("ipamclaims", "IPAMClaims")],
                        default="ippool",
                        max_length=10,
                    ),
                ),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("mapping", models.JSONField(blank=True, default=dict)),
                ("format", models.CharField(blank=True, default="", max_length=32)),
                ("file_name", models.CharField(blank=True, default="", max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("drafting", "being read"),
                            ("drafted", "to be looked at"),
                            ("committing", "being written"),
                            ("committed", "written"),
                            ("undone", "undone"),
                            ("cancelled", "cancelled"),
                            ("failed", "failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("left_out", models.JSONField(blank=True, default=dict)),
                ("notes", models.JSONField(blank=True, default=list)),
                ("rows_total", models.PositiveIntegerField(blank=True, null=True)),
                ("rows_done", models.PositiveIntegerField(default=0)),
                ("commit_wanted", models.BooleanField(default=False)),
                ("skip_bad", models.BooleanField(default=False)),
                ("cancel_wanted", models.BooleanField(default=False)),
                ("error_code", models.CharField(blank=True, default="", max_length=63)),
                ("error", models.CharField(blank=True, default="", max_length=1000)),
                ("limited", models.BooleanField(default=False)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("source", models.CharField(blank=True, default="", max_length=8)),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("fence", models.PositiveBigIntegerField(default=0, editable=False)),
                ("leased_until", models.DateTimeField(editable=False, null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("drafted_at", models.DateTimeField(blank=True, null=True)),
                ("committed_at", models.DateTimeField(blank=True, null=True)),
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vm_imports",
                        to="pools.cluster",
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="vm_imports",
                        to="claims.network",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="vm_imports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "import",
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ImportRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("row", models.PositiveIntegerField()),
                ("sheet", models.CharField(blank=True, default="", max_length=64)),
                ("source_vm", models.CharField(blank=True, default="", max_length=300)),
                ("source_mac", models.CharField(blank=True, default="", max_length=300)),
                (
                    "source_ips",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=300),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("source_namespace", models.CharField(blank=True, default="", max_length=300)),
                ("port_group", models.CharField(blank=True, default="", max_length=300)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("vm", models.CharField(blank=True, default="", max_length=253, verbose_name="VM")),
                ("namespace", models.CharField(blank=True, default="", max_length=253)),
                ("mac", claims.models.fields.MACField(blank=True, null=True)),
                (
                    "ips",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("claim_name", models.CharField(blank=True, default="", max_length=253)),
                ("usable", models.BooleanField(default=True)),
                ("found", models.JSONField(blank=True, default=list)),
                ("found_refused", models.BooleanField(default=False)),
                ("problems", models.JSONField(blank=True, default=list)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("new", "new"),
                            ("changed", "changed"),
                            ("unchanged", "unchanged"),
                            ("conflict", "conflict"),
                            ("refused", "refused"),
                            ("skipped", "skipped"),
                        ],
                        default="new",
                        max_length=9,
                    ),
                ),
                ("reasons", models.JSONField(blank=True, default=list)),
                ("before", models.JSONField(blank=True, null=True)),
                ("skipped", models.BooleanField(db_default=False, default=False)),
                ("corrected", models.BooleanField(db_default=False, default=False)),
                ("written", models.BooleanField(db_default=False, default=False)),
                (
                    "claim",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="claims.ipamclaim",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="claims.entry",
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="claims.network",
                    ),
                ),
                (
                    "vm_import",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="claims.vmimport",
                    ),
                ),
            ],
            options={
                "verbose_name": "row of an import",
                "ordering": ["vm_import_id", "number"],
            },
        ),
        migrations.CreateModel(
            name="ImportFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(default="file", max_length=4)),
                ("content", models.BinaryField()),
                (
                    "vm_import",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="file",
                        to="claims.vmimport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="VMImportEvent",
            fields=[
                ("pgh_created_at", models.DateTimeField(auto_now_add=True)),
                ("pgh_label", models.TextField(help_text="The event label.")),
                ("pgh_context", pghistory.utils.JSONField(null=True)),
                (
                    "target",
                    models.CharField(
                        choices=[("ippool", "IPPool entries"), ("ipamclaims", "IPAMClaims")],
                        default="ippool",
                        max_length=10,
                    ),
                ),
                ("format", models.CharField(blank=True, default="", max_length=32)),
                ("file_name", models.CharField(blank=True, default="", max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("drafting", "being read"),
                            ("drafted", "to be looked at"),
                            ("committing", "being written"),
                            ("committed", "written"),
                            ("undone", "undone"),
                            ("cancelled", "cancelled"),
                            ("failed", "failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("counts", models.JSONField(blank=True, default=dict)),
                (
                    "pgh_id",
                    models.BigIntegerField(
                        db_default=models.Func(
                            models.Value("pools_event_number"), function="nextval"
                        ),
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        related_query_name="+",
                        to="pools.cluster",
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        related_query_name="+",
                        to="claims.network",
                    ),
                ),
                (
                    "pgh_obj",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="claims.vmimport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Wave",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63)),
                ("planned_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="waves",
                        to="pools.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["cluster__name", "name"],
            },
        ),
        migrations.CreateModel(
            name="WaveEvent",
            fields=[
                ("pgh_created_at", models.DateTimeField(auto_now_add=True)),
                ("pgh_label", models.TextField(help_text="The event label.")),
                ("pgh_context", pghistory.utils.JSONField(null=True)),
                ("name", models.CharField(max_length=63)),
                ("planned_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                (
                    "pgh_id",
                    models.BigIntegerField(
                        db_default=models.Func(
                            models.Value("pools_event_number"), function="nextval"
                        ),
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        related_query_name="+",
                        to="pools.cluster",
                    ),
                ),
                (
                    "pgh_obj",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="claims.wave",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="WaveVM",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("vm", models.CharField(max_length=253, verbose_name="VM")),
                ("source_vm", models.CharField(blank=True, default="", max_length=300)),
                (
                    "wave",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vms",
                        to="claims.wave",
                    ),
                ),
            ],
            options={
                "verbose_name": "VM of a wave",
                "verbose_name_plural": "VMs of a wave",
                "ordering": ["namespace", "vm"],
            },
        ),
        migrations.CreateModel(
            name="PortGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=300)),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="port_groups",
                        to="pools.cluster",
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="port_groups",
                        to="claims.network",
                    ),
                ),
            ],
            options={
                "verbose_name": "port group",
                "ordering": ["cluster__name", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="port_group_name_unique"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="vmimport",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "drafting", "committing"])),
                fields=["leased_until"],
                name="vm_import_due",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vmimport",
            trigger=pgtrigger.compiler.Trigger(
                name="created_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='INSERT INTO "claims_vmimportevent" ("cluster_id", "counts", "file_name", "format", "network_id", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "status", "target") VALUES (NEW."cluster_id", NEW."counts", NEW."file_name", NEW."format", NEW."network_id", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."status", NEW."target"); RETURN NULL;',
                    hash="bbbab922cd9381f97a8df5f9a3aac3c7a2ab5d45",
                    operation="INSERT",
                    pgid="pgtrigger_created_insert_681f9",
                    table="claims_vmimport",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vmimport",
            trigger=pgtrigger.compiler.Trigger(
                name="changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NEW.\"status\" IN ('drafted', 'committed', 'undone', 'cancelled', 'failed') AND OLD.\"status\" IS DISTINCT FROM (NEW.\"status\"))",
                    func='INSERT INTO "claims_vmimportevent" ("cluster_id", "counts", "file_name", "format", "network_id", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "status", "target") VALUES (NEW."cluster_id", NEW."counts", NEW."file_name", NEW."format", NEW."network_id", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."status", NEW."target"); RETURN NULL;',
                    hash="d0d5e1113e5ef99826a855de6fbbcc1bbe60bc4e",
                    operation="UPDATE",
                    pgid="pgtrigger_changed_update_cec80",
                    table="claims_vmimport",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="importrow",
            index=models.Index(
                fields=["vm_import", "verdict", "number"], name="import_row_verdict"
            ),
        ),
        migrations.AddConstraint(
            model_name="importrow",
            constraint=models.UniqueConstraint(
                fields=("vm_import", "number"), name="import_row_number"
            ),
        ),
        migrations.AddIndex(
            model_name="vmimportevent",
            index=models.Index(fields=["pgh_obj", "pgh_id"], name="vm_import_event_object"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vmimportevent",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="d27d4fe21c8f4b0c7492ad0820fc468c0c8196dd",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_9a441",
                    table="claims_vmimportevent",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="wave",
            constraint=models.UniqueConstraint(
                fields=("cluster", "name"),
                name="wave_name_unique",
                violation_error_code="already_exists",
                violation_error_message="The cluster has a wave of this name.",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="wave",
            trigger=pgtrigger.compiler.Trigger(
                name="created_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT new_values."cluster_id", new_values."name", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."planned_at" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;',
                    hash="c71f3974490d156609b8ce0c9cea4060a4f6b230",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_created_insert_a847c",
                    referencing="REFERENCING NEW TABLE AS new_values ",
                    table="claims_wave",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="wave",
            trigger=pgtrigger.compiler.Trigger(
                name="changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT new_values."cluster_id", new_values."name", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."planned_at" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."note" IS DISTINCT FROM (new_values."note") OR old_values."planned_at" IS DISTINCT FROM (new_values."planned_at")) ) AS new_values, _pgh_attached_context; RETURN NULL;',
                    hash="ce34e1851716f7ab81a7bf1c3152293d1ec3e899",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_changed_update_37abc",
                    referencing="REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ",
                    table="claims_wave",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="wave",
            trigger=pgtrigger.compiler.Trigger(
                name="deleted_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT old_values."cluster_id", old_values."name", old_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."planned_at" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;',
                    hash="4fed5e7381c710faa728dfe51e55e173aca5ca21",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_deleted_delete_283f7",
                    referencing="REFERENCING OLD TABLE AS old_values ",
                    table="claims_wave",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="waveevent",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="f350ef92769e278ba6ebd52a252585be4496860d",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_90ade",
                    table="claims_waveevent",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="wavevm",
            constraint=models.UniqueConstraint(
                fields=("wave", "namespace", "vm"), name="wave_vm_unique"
            ),
        ),
        # Files are often compressed already, and do not stay.
        migrations.RunSQL(
            "ALTER TABLE claims_importfile ALTER COLUMN content SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        # pgtrigger's function, which every migration with triggers writes anew, is replaced again.
        *sql.install("rules"),
        migrations.RunPython(give_to_roles, migrations.RunPython.noop),
    ]
