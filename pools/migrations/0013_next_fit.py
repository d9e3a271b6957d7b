"""Where Cilium's next-fit goes on, for every process. Goes before the code."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0012_token_uses'),
    ]

    operations = [
        migrations.AddField(
            model_name='poolcidr',
            name='next_index',
            field=models.DecimalField(db_default=0, decimal_places=0, default=0, editable=False, max_digits=39),
        ),
    ]
