// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

const (
	sourceTimeout = 10 * time.Second
	mintTimeout   = 15 * time.Second
	// maxSecret is the maximum size of a Secret, in base64 and with its metadata.
	maxSecret = 4 << 20
	// maxAnswer is the maximum size of a cluster's response.
	maxAnswer = 256 << 10
)

// tokenSources reads the Secrets that providers create for us.
type tokenSources struct {
	front corev1client.CoreV1Interface
}

// of returns the token source of a request. Its errors do not quote the Secret.
func (s tokenSources) of(ctx context.Context, o *openmcp.AccessRequest) (*tokenSource, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	// A stream, to limit the number of bytes that are read.
	stream, err := s.front.RESTClient().Get().Namespace(openmcp.TokenSourceNamespace).Resource("secrets").Name(string(o.UID)).
		SetHeader("Accept", "application/json").Stream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, forbidden(o, "the provider of its cluster offers no short-lived tokens: use the Secret that status.secretRef names")
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot read the token source of an access request", "accessRequest", klog.KObj(o))
		return nil, generic.Unavailable(errors.New("the hub's kube-apiserver did not return the token source of the request: try again later"))
	}
	secret := &corev1.Secret{}
	if err := decode(stream, maxSecret, secret); err != nil {
		return nil, apierrors.NewInternalError(errors.New("the token source of the request cannot be read"))
	}
	source, err := parseSource(secret, o)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("the Secret %s/%s cannot be used as a token source: %w; the provider of the "+
			"cluster must correct it", openmcp.TokenSourceNamespace, o.UID, err))
	}
	return source, nil
}

func decode(stream io.ReadCloser, limit int64, into any) error {
	defer func() { _ = stream.Close() }()
	return json.NewDecoder(io.LimitReader(stream, limit)).Decode(into)
}

// tokenSource requests tokens of one ServiceAccount.
type tokenSource struct {
	server, serverName string
	ca                 []byte
	roots              *x509.CertPool
	token              string
	namespace, account string
}

// parseSource takes from a Secret only what is needed. Its writers must not be able to make hub-apiserver read files, start programs, or connect to a
// server that it cannot verify.
func parseSource(secret *corev1.Secret, o *openmcp.AccessRequest) (*tokenSource, error) {
	if secret.Type != openmcp.TokenSourceSecretType {
		return nil, fmt.Errorf("its type must be %s, not %q", openmcp.TokenSourceSecretType, secret.Type)
	}
	if want, got := o.Namespace+"/"+o.Name, string(secret.Data[openmcp.TokenSourceAccessRequestKey]); got != want {
		return nil, fmt.Errorf("%s must be %s, the AccessRequest", openmcp.TokenSourceAccessRequestKey, want)
	}
	s := &tokenSource{
		namespace: string(secret.Data[openmcp.TokenSourceServiceAccountNamespaceKey]),
		account:   string(secret.Data[openmcp.TokenSourceServiceAccountNameKey]),
	}
	if len(validation.IsDNS1123Label(s.namespace)) > 0 {
		return nil, fmt.Errorf("%s must be the name of a namespace", openmcp.TokenSourceServiceAccountNamespaceKey)
	}
	if len(validation.IsDNS1123Subdomain(s.account)) > 0 {
		return nil, fmt.Errorf("%s must be the name of a ServiceAccount", openmcp.TokenSourceServiceAccountNameKey)
	}
	if err := s.parseKubeconfig(secret.Data[openmcp.TokenSourceKubeconfigKey]); err != nil {
		return nil, fmt.Errorf("%s: %w", openmcp.TokenSourceKubeconfigKey, err)
	}
	return s, nil
}

func (s *tokenSource) parseKubeconfig(data []byte) error {
	config, err := clientcmd.Load(data)
	if err != nil {
		return errors.New("it cannot be parsed") // the error may quote a part of it
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return errors.New("current-context must be one of contexts")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return errors.New("the context must have a cluster and a user")
	}
	if others := fieldsBeside(*cluster, "server", "tls-server-name", "certificate-authority-data"); len(others) > 0 {
		return fmt.Errorf("the cluster may only have server, tls-server-name and certificate-authority-data, and has %s",
			strings.Join(others, ", "))
	}
	if others := fieldsBeside(*user, "token"); len(others) > 0 {
		return fmt.Errorf("the user may only have token, and has %s", strings.Join(others, ", "))
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil || server.RawQuery != "" ||
		server.Fragment != "" {
		return errors.New("server must be an https URL without credentials, query and fragment")
	}
	// Without a CA, the system's CAs verify the server.
	if len(cluster.CertificateAuthorityData) > 0 {
		s.roots = x509.NewCertPool()
		if !s.roots.AppendCertsFromPEM(cluster.CertificateAuthorityData) {
			return errors.New("certificate-authority-data must have a certificate in PEM")
		}
	}
	if user.Token == "" || strings.ContainsFunc(user.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("token must be a token")
	}
	s.server, s.serverName, s.ca, s.token = cluster.Server, cluster.TLSServerName, cluster.CertificateAuthorityData, user.Token
	return nil
}

// fieldsBeside returns the names of the fields of a part of a kubeconfig that are set and not in the list.
func fieldsBeside(part any, allowed ...string) (others []string) {
	value := reflect.ValueOf(part)
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		field := value.Field(i)
		empty := field.IsZero() || (field.Kind() == reflect.Map || field.Kind() == reflect.Slice) && field.Len() == 0
		if !empty && !slices.Contains(allowed, name) {
			others = append(others, name)
		}
	}
	return others
}

// mint requests a token from the cluster. Connections are not reused: they cost little, and the address of the cluster may change.
func (s *tokenSource) mint(ctx context.Context, seconds int64, audiences []string) (*authenticationv1.TokenRequestStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, mintTimeout)
	defer cancel()
	client, err := corev1client.NewForConfigAndClient(&rest.Config{Host: s.server, QPS: -1}, s.httpClient())
	if err != nil {
		return nil, apierrors.NewInternalError(errors.New("the token source cannot be used to connect to the cluster"))
	}
	stream, err := client.RESTClient().Post().Namespace(s.namespace).Resource("serviceaccounts").Name(s.account).SubResource("token").
		SetHeader("Authorization", "Bearer "+s.token).SetHeader("Accept", "application/json").MaxRetries(0).
		Body(&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}).
		Stream(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	answer := &authenticationv1.TokenRequest{}
	if err := decode(stream, maxAnswer, answer); err != nil || answer.Status.Token == "" || answer.Status.ExpirationTimestamp.IsZero() {
		return nil, apierrors.NewServiceUnavailable(s.server + " responded without a token: check that it is the API server of the cluster")
	}
	return &answer.Status, nil
}

func (s *tokenSource) httpClient() *http.Client {
	return &http.Client{
		Transport: limited{&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        &tls.Config{RootCAs: s.roots, ServerName: s.serverName, MinVersion: tls.VersionTLS12},
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: maxAnswer,
		}},
		// The credentials are for one server, and so is the verification.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited limits the size of responses, including those with errors.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}
	return response, nil
}

// explain passes on the errors of an API server. The response of any other server may be confidential, and is not passed on.
func (s *tokenSource) explain(err error) error {
	var status apierrors.APIStatus
	var request *url.Error
	switch {
	case errors.As(err, &status) && apierrors.IsUnexpectedServerError(err):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s responded with code %d, and not as an API server", s.server,
			status.Status().Code))
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return apierrors.NewBadRequest("the cluster refused the request for a token: " + err.Error())
	case errors.As(err, &status):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster did not return a token: %v", err))
	case errors.As(err, &request):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s cannot be reached: %v", s.server, request.Err))
	}
	return apierrors.NewServiceUnavailable(s.server + " cannot be reached")
}

// kubeconfig returns a kubeconfig with a token.
func (s *tokenSource) kubeconfig(token string) (string, error) {
	const name = "cluster"
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: s.server, TLSServerName: s.serverName, CertificateAuthorityData: s.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	return string(data), err
}
