package cgroup

import "os"

// groupRoom returns how many bytes the control groups of this process leave; false without a limit.
func groupRoom() (int64, bool) {
	g := Of("/", os.Getpid(), func(name string) ([]byte, error) { return os.ReadFile("/" + name) })
	g.Update()
	return g.Room()
}
