package cmd

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") { // the program starts itself: it must not run the tests again
		Main()
		return
	}
	os.Exit(m.Run())
}
