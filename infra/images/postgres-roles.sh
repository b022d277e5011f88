# Run once in a new cluster, as its superuser: a database and a role for each service that has a
# password here (also as NAME_FILE); a role can connect to its own database and to no other.
for service in gateway spawner meter; do
  variable=ALCOVE_$(echo "$service" | tr '[:lower:]' '[:upper:]')_DATABASE_PASSWORD
  eval "password=\${$variable:-} file=\${${variable}_FILE:-}"
  [ -z "$file" ] || password=$(cat "$file")
  [ -n "$password" ] || continue
  psql -v ON_ERROR_STOP=1 --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
       -v name="$service" -v password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
done
