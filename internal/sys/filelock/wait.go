package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// interval is the time between attempts to take a lock.
const interval = 200 * time.Millisecond

// Wait waits for the lock of a file, which is created if necessary, and takes it: of several processes one goes on. It fails when the
// context ends, or the file cannot be opened.
func Wait(ctx context.Context, path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) { return Try(file) })
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
