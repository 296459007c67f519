package detach

import (
	"os/exec"
	"runtime"
)

// Start starts a command. On Linux the kernel kills it when this process ends, also when that was killed: it is asked to at the end of the
// thread that starts the command, so one thread is kept for that. The channel gets the result of the command's Wait.
func Start(command *exec.Cmd) (<-chan error, error) {
	command.SysProcAttr = killedWithParent(command.SysProcAttr)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			ended <- command.Wait()
		}
	}()
	return ended, <-started
}
