package child

import "fmt"

// raise is not supported on Windows.
func raise(fault string) error { return fmt.Errorf("no way to %s", fault) }

// parentMain is not needed: no test kills a parent on Windows.
func parentMain() {}
