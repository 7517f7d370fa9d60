// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

type probeKind string

const (
	startup   probeKind = "startup"
	liveness  probeKind = "liveness"
	readiness probeKind = "readiness"
)

// eager is the interval of a probe that waits for success, to shorten the tests. Failures count at the probe's own interval.
const eager = 200 * time.Millisecond

// probe runs a probe of a container until its process ends.
func (c *container) probe(ctx context.Context, l *life, kind probeKind, p *corev1.Probe) {
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	pause(ctx, time.Duration(p.InitialDelaySeconds)*time.Second)
	good, successes, failures := kind == liveness, 0, 0
	var counted time.Time
	for ctx.Err() == nil {
		next := eager
		if kind == startup || l.told(&l.hasStarted) {
			err := c.ask(ctx, p)
			if err == nil {
				successes, failures = successes+1, 0
			} else {
				successes = 0
				if time.Since(counted) >= period {
					failures, counted = failures+1, time.Now()
				}
			}
			switch {
			case ctx.Err() != nil:
				return
			case err == nil && !good && successes >= int(max(p.SuccessThreshold, 1)):
				good = true
				l.say(kind, "")
				c.w.awake()
			case err != nil && failures >= int(max(p.FailureThreshold, 1)) && (good || kind == startup):
				good = false
				l.say(kind, fmt.Sprintf("the %s probe of container %s has failed: %v", kind, c.spec.Name, err))
				c.w.awake()
				if kind != readiness {
					return // it ends
				}
			}
			if good {
				next = period
			}
			if kind == startup && good {
				return
			}
		}
		pause(ctx, next)
	}
}

func (l *life) told(what *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *what
}

// say records the result of a probe: an error, or "".
func (l *life) say(kind probeKind, wrong string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case readiness:
		l.ready = wrong == ""
	case startup:
		l.hasStarted = wrong == ""
		fallthrough
	case liveness:
		l.sick = wrong
	}
}

func (c *container) ask(ctx context.Context, p *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case p.HTTPGet != nil:
		address, err := c.address(p.HTTPGet.Port)
		if err != nil {
			return err
		}
		return askHTTP(ctx, c.w.network.dial, address, p.HTTPGet)
	case p.TCPSocket != nil:
		address, err := c.address(p.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := c.w.network.dial(ctx, address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return fmt.Errorf("its kind is not known")
}

// address returns the address of a port, given by name or number.
func (c *container) address(port intstr.IntOrString) (string, error) {
	number := port.IntVal
	for _, declared := range c.spec.Ports {
		if port.Type == intstr.String && declared.Name == port.StrVal {
			number = declared.ContainerPort
		}
	}
	if number == 0 {
		return "", fmt.Errorf("container %s declares no port %s", c.spec.Name, port.String())
	}
	return localserver.Address(int(number)), nil
}

// askHTTP sends one request, over a new connection. A real kubelet does not verify certificates either.
func askHTTP(ctx context.Context, dial func(context.Context, string) (net.Conn, error), address string, get *corev1.HTTPGetAction) error {
	prober := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+get.Path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/test")
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	response, err := prober.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("%s answers %s", request.URL.Path, response.Status)
	}
	return nil
}
