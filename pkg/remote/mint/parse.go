// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/command"
)

const (
	// MaxSize is the maximum size of a source in bytes.
	MaxSize = 256 << 10
	// maxURL is the maximum length of the URL of a server or a proxy in bytes.
	maxURL = 2 << 10
)

// Parse validates a user's kubeconfig, and takes from its current context what is needed to reach the cluster. Other contexts, clusters and users in
// it are ignored. Parse never weakens security settings: it rejects what cannot be used as is.
//
// The only error is a *Refused. It does not quote the kubeconfig.
func Parse(data []byte) (*Source, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, refuse(ReasonMissing, "the kubeconfig is missing or empty: put the kubeconfig of an admin of the cluster there")
	}
	if len(data) > MaxSize {
		return nil, refuse(ReasonTooLarge, "the kubeconfig has %d bytes, and may have %d: leave the context that is needed, "+
			"as by kubectl config view --flatten --minify", len(data), MaxSize)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, refuse(ReasonUnreadable, "the kubeconfig cannot be parsed") // the error may quote a part of it
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, refuse(ReasonNoContext, "current-context of the kubeconfig must be the name of one of its contexts")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, refuse(ReasonNoContext, "the current context of the kubeconfig must name a cluster and a user that are in it")
	}
	s := &Source{}
	for _, take := range []func() error{
		func() error { return noFiles(cluster, user) },
		func() error { return s.setServer(cluster) },
		func() error { return s.setProxy(cluster.ProxyURL) },
		func() error { return s.setCA(cluster.CertificateAuthorityData) },
		func() error { return s.setUser(user) },
	} {
		if err := take(); err != nil {
			return nil, err
		}
	}
	if s.mint() != nil {
		return nil, refuse(ReasonUnreadable, "the kubeconfig has a cluster that cannot be written into another one")
	}
	return s, nil
}

func refuse(reason, format string, args ...any) error {
	return &Refused{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// noFiles rejects settings that would read from this machine, or run a program on it.
func noFiles(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	for field, path := range map[string]string{
		"certificate-authority": cluster.CertificateAuthority, "client-certificate": user.ClientCertificate,
		"client-key": user.ClientKey, "tokenFile": user.TokenFile,
	} {
		if path != "" {
			return refuse(ReasonFilePath, "%s of the kubeconfig is a file, which does not exist where the kubeconfig is used: "+
				"make it self-contained, as by kubectl config view --flatten --minify", field)
		}
	}
	if user.Exec != nil || user.AuthProvider != nil {
		return refuse(ReasonExecPlugin, "the user of the kubeconfig logs in by a program (exec or auth-provider), and none is run: "+
			"put a token, or a certificate and its key, into it")
	}
	return nil
}

func (s *Source) setServer(cluster *clientcmdapi.Cluster) error {
	if len(cluster.Server) > maxURL {
		return refuse(ReasonTooLarge, "server of the kubeconfig has %d bytes, and may have %d", len(cluster.Server), maxURL)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Hostname() == "" || !isPort(server.Port()) || server.Opaque != "" || server.User != nil ||
		server.RawQuery != "" || server.ForceQuery || server.Fragment != "" {
		return refuse(ReasonNoServer, "server of the kubeconfig must be a URL such as https://host:6443, without credentials, query and "+
			"fragment")
	}
	switch {
	case server.Scheme != "https":
		return refuse(ReasonInsecure, "server of the kubeconfig must begin with https://: an admin's credentials go there")
	case cluster.InsecureSkipTLSVerify:
		return refuse(ReasonInsecure, "the kubeconfig has insecure-skip-tls-verify, and the server of an admin's credentials must be "+
			"verified: put its CA into certificate-authority-data")
	}
	if name := cluster.TLSServerName; name != "" && net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
		return refuse(ReasonNoServer, "tls-server-name of the kubeconfig must be the name of a host, or an IP address")
	}
	s.server, s.serverName = cluster.Server, cluster.TLSServerName
	return nil
}

// isPort also accepts an empty port.
func isPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && 0 < n && n < 1<<16
}

func (s *Source) setProxy(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > maxURL {
		return refuse(ReasonTooLarge, "proxy-url of the kubeconfig has %d bytes, and may have %d", len(text), maxURL)
	}
	err := command.CheckProxyURL(text)
	if err != nil {
		return refuse(ReasonInvalidProxy, "proxy-url of the kubeconfig %v", err)
	}
	s.proxy, err = url.Parse(text)
	if err != nil || s.proxy.Hostname() == "" || !isPort(s.proxy.Port()) {
		return refuse(ReasonInvalidProxy, "proxy-url of the kubeconfig must have a host, and a port from 1 to 65535 if it has one")
	}
	return nil
}

// setCA parses all of it: a bundle with a truncated certificate is a mistake that is better reported now.
func (s *Source) setCA(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return refuse(ReasonNoCA, "the kubeconfig has no certificate-authority-data, so its server cannot be verified, not by the "+
			"system's CAs either, as the agents have others: put the server's CA there")
	}
	s.roots = x509.NewCertPool()
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			return refuse(ReasonNoCA, "certificate-authority-data of the kubeconfig must have certificates in PEM and nothing else")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return refuse(ReasonNoCA, "a certificate in certificate-authority-data of the kubeconfig cannot be read")
		}
		s.roots.AddCert(certificate)
	}
	s.ca = bytes.Clone(data)
	return nil
}

func (s *Source) setUser(user *clientcmdapi.AuthInfo) error {
	if user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0 {
		return refuse(ReasonImpersonation, "the user of the kubeconfig acts as another one (as): give the credentials of that one")
	}
	if user.Username != "" || user.Password != "" {
		return refuse(ReasonNoCredentials, "the user of the kubeconfig logs in by name and password, which Kubernetes does not take: "+
			"put a token, or a certificate and its key, into it")
	}
	if len(user.Token) > command.MaxToken {
		return refuse(ReasonTooLarge, "token of the kubeconfig has %d bytes, and may have %d", len(user.Token), command.MaxToken)
	}
	if !command.IsToken(user.Token) && user.Token != "" {
		return refuse(ReasonNoCredentials, "token of the kubeconfig must be letters, digits and signs, without space or line breaks")
	}
	s.token = user.Token
	if len(user.ClientCertificateData) == 0 && len(user.ClientKeyData) == 0 {
		if s.token == "" {
			return refuse(ReasonNoCredentials, "the user of the kubeconfig has no credentials: put a token, or a certificate and its "+
				"key, into it")
		}
		return nil
	}
	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		return refuse(ReasonNoCredentials, "client-certificate-data and client-key-data of the kubeconfig must be a certificate and its key")
	}
	s.certificate = &pair
	s.cert, s.key = bytes.Clone(user.ClientCertificateData), bytes.Clone(user.ClientKeyData)
	return nil
}
