from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.execute("INSERT INTO alembic_users VALUES (1)")


def downgrade():
    op.execute("DELETE FROM alembic_users WHERE id = 1")
