package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// store is a place in which kine stores objects.
type store struct {
	name, title string
	// start starts what it needs.
	start func(ctx context.Context, folder string) (stop func() error, err error)
	// endpoint is kine's endpoint for a cluster, whose directory is $dir in the shell.
	endpoint func(folder string) string
	// setup are shell commands before kine starts.
	setup func(folder string) string
	// explanation explains what failed.
	explanation string
}

func noop(context.Context, string) (func() error, error) { return func() error { return nil }, nil }

func noSetup(string) string { return "" }

// recreated explains a fault of kine v0.17.5 in stores with SQL.
const recreated = `When a name is created that existed before, the response may have the resourceVersion of another write. The cause is
` + "`LogStructured.Create`" + ` in pkg/logstructured/logstructured.go of kine v0.17.5. It assigns the revision of the new row to a variable
that shadows the one it returns. It returns 0, which is replaced with the current revision of the store. That is another one if another object
is written at the same time.

Smallest history: client A creates, deletes and creates an object, and client B writes another object at the time of the second create. The
response to the second create has a resourceVersion that neither a watch nor a get shows for the object. An update with it is refused
with 409, and a watch from it may miss the next change or show the create again.

With the variable assigned, an exploration of 4 minutes shows no failure on SQLite.`

// tombstones explains a fault of kine v0.17.5 in NATS.
const tombstones = `A delete may return 404 although it has deleted the object. The cause is ` + "`Backend.Delete`" + ` in pkg/drivers/nats/backend.go
of kine v0.17.5. It writes a tombstone, and then deletes the key if the tombstone is still the last revision of the key. If another client
creates an object of the same name between the two steps, the second step fails. Delete then returns that nothing was deleted, but the
tombstone has already replaced the object.

Smallest history: client A deletes an object, and client B creates an object of the same name at the same time. The create returns 201 with a
new uid, and the delete returns 404. Whether an exploration of a minute meets this moment depends on chance.

If the second step's failure counts as a deletion, an exploration of 150 s with the same seed shows no failure.`

var stores = []store{
	{
		name: "sqlite", title: "SQLite", start: noop, setup: noSetup, explanation: recreated,
		endpoint: func(string) string {
			return "sqlite://$dir/state.db?_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate&_stmt_cache_size=20&cache=shared"
		},
	},
	{
		name: "nats", title: "NATS", start: noop, explanation: tombstones,
		setup:    func(string) string { return `echo "jetstream: {store_dir: \"$dir/nats\"}" > "$dir/nats.conf"` },
		endpoint: func(string) string { return "nats://?dontListen&serverConfig=$dir/nats.conf" },
	},
	{
		name: "postgresql", title: "PostgreSQL", start: startPostgreSQL, setup: noSetup, explanation: "The cause is that of the failures on SQLite.",
		endpoint: func(folder string) string {
			return "postgres://postgres@localhost/$(basename $PWD | tr -d -)?host=" + folder + "&sslmode=disable"
		},
	},
}

// compacting are flags with which kine compacts every 5 seconds instead of every 5 minutes.
const compacting = "--compact-interval 5s"

// binaries makes a directory of that name with the binaries of Kubernetes, in which a script instead of etcd starts kine with the flags.
func (s store) binaries(folder, name, kubernetes, flags string) (string, error) {
	dir := filepath.Join(folder, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		path, err := filepath.Abs(filepath.Join(kubernetes, name))
		if err != nil {
			return "", err
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	program, err := filepath.Abs(kine)
	if err != nil {
		return "", err
	}
	script := fmt.Sprintf(`#!/bin/sh
set -e
for flag; do
  case $flag in
  --data-dir=*) dir=${flag#*=} ;;
  --listen-client-urls=*) listen=${flag#*=} ;;
  esac
done
mkdir -p "$dir"
%s
exec %s --listen-address "$listen" --endpoint "%s" --metrics-bind-address 0 %s
`, s.setup(folder), program, s.endpoint(folder), flags)
	return dir, os.WriteFile(filepath.Join(dir, "etcd"), []byte(script), 0o755)
}

// postgresStarts limits how long PostgreSQL may take to start.
const postgresStarts = time.Minute

// startPostgreSQL starts the PostgreSQL of the Debian package postgresql, as the user postgres, on a socket in the folder.
func startPostgreSQL(ctx context.Context, folder string) (func() error, error) {
	account, err := user.Lookup("postgres")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errors.New("PostgreSQL is not installed: install the package postgresql"), err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids
	if err := os.Chown(folder, uid, gid); err != nil {
		return nil, err
	}
	programs, data := found[len(found)-1], filepath.Join(folder, "data")
	initialize := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata", data, "--auth", "trust", "--no-sync")
	initialize.SysProcAttr, initialize.Dir = as, folder
	if output, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, output)
	}
	server := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=500")
	server.SysProcAttr, server.Dir = as, folder
	if err := server.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		_ = server.Process.Signal(syscall.SIGINT) // fast shutdown, after which its exit code is 0
		return server.Wait()
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, postgresStarts, true, func(ctx context.Context) (bool, error) {
		return exec.CommandContext(ctx, filepath.Join(programs, "pg_isready"), "-h", folder).Run() == nil, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("PostgreSQL does not start: %w", err), stop())
	}
	return stop, nil
}
