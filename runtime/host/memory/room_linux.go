package memory

import (
	"os"

	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// groupRoom returns how many bytes the control groups of this process leave; false without a limit.
func groupRoom() (int64, bool) {
	g := cgroup.Of("/", os.Getpid(), func(name string) ([]byte, error) { return os.ReadFile("/" + name) })
	g.Update()
	return g.Room()
}
