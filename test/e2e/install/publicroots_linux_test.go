// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestPublicRoots_EmptyRootDirectory runs the programs of the images in a root directory that has no other files, as in the images, against a
// server whose certificate is of a CA that only the test knows.
//
// With the CA mounted, each program connects: the system's roots take precedence. When the program is configured to prefer its built-in roots, it
// must not connect, which shows that it has some: a program without built-in roots would still use the CA. pkg/publicroots tests which roots these
// are.
func TestPublicRoots_EmptyRootDirectory(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{
		{"hub-apiserver", "--kubeconfig=/kubeconfig", "--authentication-kubeconfig=/kubeconfig", "--authorization-kubeconfig=/kubeconfig",
			"--bind-address=127.0.0.1", "--data-dir=/data", "--cert-dir=/certs"},
		{"hub-controller-manager", "--kubeconfig=/kubeconfig", "--health-probe-bind-address=0", "--metrics-bind-address=0"},
		{"hub-agent", "--spoke-kubeconfig=/kubeconfig", "--cluster-name=berlin-1", "--cluster-server-url=https://localhost",
			"--health-probe-bind-address=0"},
		{"cluster-provider", "kubeconfig", "run", "--environment=dev", "--provider-name=test", "--kubeconfig=/kubeconfig"},
	} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			const mounted = "SSL_CERT_FILE=/ca.crt"
			if err := met(t, command, mounted); err != nil {
				t.Errorf("with the CA of the server in the place of the system's, %s refuses it: %v", command[0], err)
			}
			err := met(t, command, mounted, "GODEBUG=x509usefallbackroots=1")
			if err == nil {
				t.Errorf("%s has no roots of its own: in its image, which has none either, it can verify no public server", command[0])
			}
		})
	}
}

// stranger is a TLS server that serves nothing.
type stranger struct {
	certs   localserver.Certificates
	address string
	// verdicts has the results of the TLS handshakes: nil if the client accepts the certificate.
	verdicts chan error
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{certs: localserver.Certificates{Dir: t.TempDir()}, verdicts: make(chan error)}
	ca := harness.Must(s.certs.Authority("ca", "stranger"))(t)
	if err := ca.Server("server", "stranger"); err != nil {
		t.Fatal(err)
	}
	pair := harness.Must(tls.LoadX509KeyPair(s.certs.Cert("server"), s.certs.Key("server")))(t)
	listener := harness.Must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}}))(t)
	t.Cleanup(func() { _ = listener.Close() })
	s.address = "https://" + listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				err := conn.(*tls.Conn).HandshakeContext(t.Context())
				if err != nil && !strings.Contains(err.Error(), "remote error: tls: ") {
					return // the client disconnected before it sent a verdict
				}
				select {
				case s.verdicts <- err:
				case <-t.Context().Done():
				}
			}()
		}
	}()
	return s
}

// met runs a program until it accepts or rejects the certificate of a server.
func met(t *testing.T, command []string, env ...string) error {
	t.Helper()
	server := newStranger(t)
	root := emptyRoot(t, harness.Binary(t, command[0]), server)
	var said harness.Buffer
	cmd := exec.CommandContext(t.Context(), "/"+command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", env, &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	unprivileged := os.Getuid() != 0
	if unprivileged {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	if err := cmd.Start(); unprivileged && errors.Is(err, os.ErrPermission) {
		t.Skipf("neither root nor user namespaces are there, for another root directory: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	select {
	case verdict := <-server.verdicts:
		return verdict
	case <-ended:
		t.Fatalf("%q has ended before it has met the server: %s", command, said.String())
	case <-t.Context().Done():
	}
	return t.Context().Err()
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// emptyRoot creates a root directory with a program and its libraries, a kubeconfig for a server without a CA, and that CA in a file.
func emptyRoot(t *testing.T, program string, server *stranger) (root string) {
	t.Helper()
	root = t.TempDir()
	copied := map[string]string{program: "/" + filepath.Base(program), server.certs.Cert("ca"): "/ca.crt"}
	out, _ := exec.CommandContext(t.Context(), "ldd", program).CombinedOutput() // programs of the images are statically linked
	for _, found := range library.FindAllStringSubmatch(string(out), -1) {
		copied[found[1]] = found[1]
	}
	for from, to := range copied {
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, harness.Must(os.ReadFile(from))(t), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: server.address}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"hub": {Token: "none"}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "hub"}},
		CurrentContext: "hub",
	}, filepath.Join(root, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return root
}
