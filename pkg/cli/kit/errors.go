// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ExplainUnreachable explains an error of the connection to a server, and says what to do. It returns other errors unchanged.
func ExplainUnreachable(server string, err error, next string) error {
	var verification *tls.CertificateVerificationError
	var request *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &verification):
		return fmt.Errorf("the certificate of %s is not trusted: %w: %s", server, verification.Err, next)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s does not speak TLS: %s", server, next)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept the credentials (401): %s", server, next)
	case errors.As(err, &request) && isNetwork(request):
		return fmt.Errorf("%s cannot be reached: %w: %s", server, request.Err, next)
	}
	return err
}

func isNetwork(err *url.Error) bool {
	var network net.Error
	return errors.As(err.Err, &network) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// IsTemporary reports whether an error may be temporary.
func IsTemporary(err error) bool {
	var request *url.Error
	return errors.As(err, &request) && isNetwork(request) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
