from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.execute("CREATE TABLE alembic_users (id INTEGER PRIMARY KEY)")


def downgrade():
    op.execute("DROP TABLE alembic_users")
