package capture

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
)

// TestFilter runs the kernel's program over packets, from behind the instructions that only the kernel can run.
func TestFilter(t *testing.T) {
	program := resolve(filterIP(8000))
	if _, err := bpf.Assemble(resolve(filter(8000, 1))); err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	udp := tcp{payload: "x"}.ip(t, false)
	udp[9] = 17
	fragment := tcp{payload: "x"}.ip(t, false)
	fragment[7] = 1
	first := tcp{payload: "x"}.ip(t, false)
	first[6] = 0x20
	large := tcp{}.ip(t, false)
	large[2], large[3] = 0, 0
	other := tcp{payload: "x"}.ip(t, false)
	binary.BigEndian.PutUint16(other[22:], 8001)
	other6 := tcp{payload: "x"}.ip(t, true)
	binary.BigEndian.PutUint16(other6[42:], 8001)
	udp6 := tcp{payload: "x"}.ip(t, true)
	udp6[6] = 17
	hop := tcp{payload: "x"}.ip(t, true)
	hop[6] = protocolHopByHop
	options := tcp{payload: "x"}.ip(t, false)
	options = append(append(options[:20:20], 1, 1, 1, 0), options[20:]...)
	options[0]++
	binary.BigEndian.PutUint16(options[2:], uint16(len(options)))
	for name, test := range map[string]struct {
		packet []byte
		keep   bool
	}{
		"data to the port":        {tcp{payload: "x"}.ip(t, false), true},
		"data from the port":      {tcp{from: Server, payload: "x"}.ip(t, false), true},
		"data to the port, IPv6":  {tcp{payload: "x"}.ip(t, true), true},
		"data from the port IPv6": {tcp{from: Server, payload: "x"}.ip(t, true), true},
		"acknowledgement":         {tcp{ack: 1}.ip(t, false), false},
		"acknowledgement, IPv6":   {tcp{ack: 1}.ip(t, true), false},
		"SYN":                     {tcp{flags: syn}.ip(t, false), true},
		"FIN, IPv6":               {tcp{flags: fin}.ip(t, true), true},
		"RST":                     {tcp{flags: rst}.ip(t, false), true},
		"another port":            {other, false},
		"another port, IPv6":      {other6, false},
		"options of IP":           {options, true},
		"UDP":                     {udp, false},
		"UDP, IPv6":               {udp6, false},
		"first fragment":          {first, true},
		"later fragment":          {fragment, false},
		"larger than 64 KiB":      {large, true},
		"hop by hop":              {hop, true},
		"ARP":                     {[]byte{0, 1, 8, 0, 6, 4}, false},
		"short":                   {[]byte{0x45, 0, 0}, false},
	} {
		n, err := vm.Run(test.packet)
		if err != nil || n > 0 != test.keep {
			t.Errorf("%s: keeps %d bytes (%v), want %v", name, n, err, test.keep)
		}
	}
}
