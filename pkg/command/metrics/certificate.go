// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// The files of --metrics-cert-dir, as in secrets of the type kubernetes.io/tls.
const certFile, keyFile = "tls.crt", "tls.key"

// checkInterval is the minimum interval between two reads of the files.
const checkInterval = 10 * time.Second

// ownRenewal is the interval after which a certificate of our own is replaced. It is valid for a year.
const ownRenewal = 180 * 24 * time.Hour

// certificate is the certificate of the metrics server: that of a folder, which is reloaded when it changes, or one of our own.
type certificate struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	checked time.Time
	content []byte
	current *tls.Certificate
}

func newCertificate(dir string) (*certificate, error) {
	c := &certificate{dir: dir, now: time.Now}
	return c, c.reload()
}

// get is for tls.Config. If a pair cannot be loaded, such as half of a new one, the previous one stays.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	every := checkInterval
	if c.dir == "" {
		every = ownRenewal
	}
	if c.now().Sub(c.checked) >= every {
		if err := c.reload(); err != nil {
			klog.Background().Error(err, "Keeping the certificate of metrics")
		}
	}
	return c.current, nil
}

func (c *certificate) reload() error {
	c.checked = c.now()
	read := c.files
	if c.dir == "" {
		read = own
	}
	cert, key, err := read()
	if err != nil {
		return err
	}
	content := bytes.Join([][]byte{cert, key}, nil)
	if bytes.Equal(content, c.content) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("the certificate of metrics: %w", err)
	}
	c.current, c.content = &pair, content
	return nil
}

func (c *certificate) files() (cert, key []byte, err error) {
	cert, err = os.ReadFile(filepath.Join(c.dir, certFile))
	if err != nil {
		return nil, nil, err
	}
	key, err = os.ReadFile(filepath.Join(c.dir, keyFile))
	return cert, key, err
}

// own returns a certificate that encrypts, and that no client trusts.
func own() (cert, key []byte, err error) {
	return certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil, "")
}
