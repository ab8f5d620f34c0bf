package child

import "fmt"

// raise knows no signals here.
func raise(fault string) error { return fmt.Errorf("no way to %s", fault) }

// parentMain is not needed: no test kills a parent here.
func parentMain() {}
