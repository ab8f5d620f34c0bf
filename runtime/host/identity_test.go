package host

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someSockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0
   1: 00000000:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:1F9 what
`

const someSockets6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 79 1 0 100 0 0 10 0
`

func TestSockets(t *testing.T) {
	read := func(state string) (got [][2]string) {
		for _, file := range []string{someSockets, someSockets6} {
			parseSockets([]byte(file), state, func(local, remote netip.AddrPort, inode, user uint64) {
				got = append(got, [2]string{local.String(), fmt.Sprint(remote, " ", inode, " of ", user)})
			})
		}
		return got
	}
	want := [][2]string{
		{"127.0.0.1:8080", "0.0.0.0:0 4242 of 1000"}, {"0.0.0.0:11434", "0.0.0.0:0 77 of 0"}, {"[::1]:80", "[::]:0 78 of 0"}, {"127.0.0.1:81", "[::]:0 79 of 0"},
	}
	if diff := cmp.Diff(want, read(stateListen)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][2]string{{"127.0.0.1:8080", "127.0.0.1:54321 4243 of 1000"}}, read(stateEstablished)); diff != "" {
		t.Error(diff)
	}
}

func FuzzSockets(f *testing.F) {
	f.Add([]byte(someSockets))
	f.Add([]byte(someSockets6))
	f.Add([]byte("0: : : 0A 1 1 1 1 1 1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		parseSockets(file, stateListen, func(local, remote netip.AddrPort, _, _ uint64) {
			if !local.IsValid() || !remote.IsValid() {
				t.Errorf("%v, %v is no address", local, remote)
			}
		})
	})
}

// TestID checks that a process is known by its number only while it lives: another one may get the number.
func TestID(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child, self := Identify(c.Process.Pid), Identify(os.Getpid())
	if self.Alive() != os.Getpid() || child.PID != c.Process.Pid {
		t.Errorf("this process is %+v, the child %+v", self, child)
	}
	_, _ = in.Close(), c.Wait()
	self.Started++
	for name, id := range map[string]ID{"ended": child, "another with the number": self, "none": Identify(0), "zero": {}} {
		if pid := id.Alive(); pid != 0 {
			t.Errorf("%s: process %d", name, pid)
		}
	}
}
