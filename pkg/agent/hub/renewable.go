// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
)

// Certificate is the client certificate of a configuration for the hub, which can be replaced while clients of that configuration exist.
type Certificate struct {
	pair   atomic.Pointer[tls.Certificate]
	dialer *connrotation.Dialer
}

// Renewable returns a configuration for the hub with a client certificate that can be replaced. The certificate is nil if the given configuration has
// none, which is then returned unchanged.
//
// client-go can do the same with files. But it reads certificate and key one after the other, and does not check them: a folder that is being
// written, or that contains something else, would break the connection of a valid identity.
func Renewable(config *rest.Config) (*rest.Config, *Certificate, error) {
	if len(config.CertData) == 0 {
		return config, nil, nil
	}
	c := &Certificate{dialer: connrotation.NewDialer((&net.Dialer{Timeout: RequestTimeout, KeepAlive: 30 * time.Second}).DialContext)}
	if err := c.Renew(config.CertData, config.KeyData); err != nil {
		return nil, nil, err
	}
	// Whether there is TLS determines the server URL, and the new configuration does not tell.
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	transportConfig, err := config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	transportConfig.TLS.CertData, transportConfig.TLS.KeyData = nil, nil
	transportConfig.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: func() (*tls.Certificate, error) { return c.pair.Load(), nil }}
	transportConfig.DialHolder = &transport.DialHolder{Dial: c.dialer.DialContext}
	through, err := transport.New(transportConfig)
	if err != nil {
		return nil, nil, err
	}
	return &rest.Config{Host: server.String(), APIPath: config.APIPath, ContentConfig: config.ContentConfig, UserAgent: config.UserAgent,
		Transport: through, QPS: config.QPS, Burst: config.Burst, Timeout: config.Timeout}, c, nil
}

// Renew replaces the certificate. It closes the connections with the previous one, which the hub would keep beyond its expiry.
func (c *Certificate) Renew(certificate, key []byte) error {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return errors.New("TLS cannot use the certificate and its private key") // the error may quote them
	}
	if c.pair.Swap(&pair) != nil {
		c.dialer.CloseAll()
	}
	return nil
}
