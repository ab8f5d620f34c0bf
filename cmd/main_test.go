package cmd

import (
	"os"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/address"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") { // the program starts itself: it must not run the tests again
		Main()
		return
	}
	if err := os.Setenv(address.DiscoverVariable, address.DiscoverOff); err != nil { // engines of other tests run on this machine
		panic(err)
	}
	os.Exit(m.Run())
}
