// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// trusted returns the users of this machine whose programs may connect: the one that runs this program, and root. If it runs as root, it allows all,
// as the browser may belong to the user who has called sudo.
func trusted() []int {
	if os.Geteuid() == 0 {
		return nil
	}
	return []int{os.Geteuid(), 0}
}

// isForeign reports whether the program at the other end of a connection of this machine belongs to a different user. Browsers send cookies to all
// ports of an address, so another user may have obtained one.
func isForeign(connection net.Conn, users []int) bool {
	if users == nil {
		return false
	}
	ours, theirs := addrPort(connection.LocalAddr()), addrPort(connection.RemoteAddr())
	user, open, found := owner(theirs, ours)
	if found {
		return !open || !slices.Contains(users, user)
	}
	// If the system does not list this end either, it lists no connections.
	_, _, tells := owner(ours, theirs)
	return tells
}

func addrPort(at net.Addr) netip.AddrPort {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}

// owner returns the user of the end of a connection, and whether a program still has it open: the system does not keep the user of a closed one.
func owner(local, remote netip.AddrPort) (user int, open, found bool) {
	for file, words := range map[string]func(netip.Addr) []byte{
		"/proc/self/net/tcp":  func(a netip.Addr) []byte { return a.Unmap().AsSlice() },
		"/proc/self/net/tcp6": func(a netip.Addr) []byte { b := a.As16(); return b[:] },
	} {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		user, open, found = find(bufio.NewScanner(f), shownAs(words(local.Addr()), local.Port()), shownAs(words(remote.Addr()), remote.Port()))
		_ = f.Close()
		if found {
			return user, open, true
		}
	}
	return 0, false, false
}

// shownAs returns an address in the format of the system: words of 32 bits in the machine's byte order.
func shownAs(address []byte, port uint16) string {
	var b strings.Builder
	for word := range slices.Chunk(address, 4) {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(word))
	}
	fmt.Fprintf(&b, ":%04X", port)
	return b.String()
}

// find searches the system's table for a connection. Its columns are: number, both addresses, state, queues, timer, tries, user, timeout, inode.
func find(table *bufio.Scanner, local, remote string) (user int, open, found bool) {
	for table.Scan() {
		columns := strings.Fields(table.Text())
		if len(columns) < 10 || columns[1] != local || columns[2] != remote {
			continue
		}
		user, err := strconv.Atoi(columns[7])
		return user, err == nil && columns[9] != "0", true
	}
	return 0, false, false
}
