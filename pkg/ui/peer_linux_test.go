// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// dialEnv makes the test binary a program that sends a request to the address in its value, and exits with 3 if it is rejected.
const dialEnv = "TEST_UI_DIAL"

func TestMain(m *testing.M) {
	address := os.Getenv(dialEnv)
	if address == "" {
		os.Exit(m.Run())
	}
	response, err := http.Get("http://" + address + "/")
	switch {
	case err != nil:
		os.Exit(1)
	case response.StatusCode == http.StatusForbidden:
		os.Exit(3)
	}
	os.Exit(0)
}

// TestAttack_OtherUserOfMachine: a cookie that another user of the machine has obtained does not help, because that user's programs may not
// connect.
func TestAttack_OtherUserOfMachine(t *testing.T) {
	me, other := os.Getuid(), 65534
	for name, test := range map[string]struct {
		trusted []int
		code    int
	}{
		"its own user":         {[]int{me}, http.StatusOK},
		"one of several":       {[]int{other, me}, http.StatusOK},
		"another user":         {[]int{other}, http.StatusForbidden},
		"root, who trusts all": {nil, http.StatusOK},
	} {
		f := start(t, func(c *Options) { c.trusted = func() []int { return test.trusted } })
		if a := f.do(f.request("GET", "/", "")); a.code != test.code {
			t.Errorf("%s: got %d: %s", name, a.code, a.body)
		}
	}
	if me != 0 {
		return // only root can start a program of another user
	}
	f := start(t, func(c *Options) { c.trusted = func() []int { return []int{0} } })
	program := "/proc/self/exe"
	command := exec.Command(program)
	command.Env = []string{dialEnv + "=" + f.host}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(other), Gid: uint32(other)}}
	_ = command.Run()
	if code := command.ProcessState.ExitCode(); code != 3 {
		t.Errorf("a program of another user ends with %d, and not because it is refused", code)
	}
}

// TestOwner_BothAddressFamilies verifies that the addresses of both families are found, and that a closed connection has no user.
func TestOwner_BothAddressFamilies(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err) // a machine may have no IPv6
			continue
		}
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		user, open, found := owner(addrPort(client.LocalAddr()), addrPort(client.RemoteAddr()))
		if user != os.Getuid() || !open || !found {
			t.Errorf("%s: of user %d, open %t, found %t", address, user, open, found)
		}
		if isForeign(server, []int{os.Getuid()}) || !isForeign(server, []int{os.Getuid() + 1}) {
			t.Errorf("%s: whose it is is not told", address)
		}
		_ = client.Close()
		if !isForeign(server, []int{os.Getuid(), 0}) {
			t.Errorf("%s: a connection that was closed has a user", address)
		}
		_ = server.Close()
		_ = listener.Close()
	}
}
