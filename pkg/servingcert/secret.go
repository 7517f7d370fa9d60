// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SecretName is the name of the Secret in the server's namespace that has the CA.
	SecretName = "hub-apiserver-serving-ca"

	keyCert     = corev1.TLSCertKey       // tls.crt: the CA in use
	keyKey      = corev1.TLSPrivateKeyKey // tls.key
	keyBundle   = "ca-bundle.crt"         // every CA that clients trust
	keyNextCert = "next-ca.crt"           // the next CA, while it is published but not in use
	keyNextKey  = "next-ca.key"

	// annotationNextFrom is when the next CA starts to sign, in RFC 3339.
	annotationNextFrom = "clusterhub.dev/next-ca-from"
	labelManagedBy     = "app.kubernetes.io/managed-by"
	managedBy          = "hub-apiserver"
)

// ErrInvalidSecret marks the errors about a Secret that exists but is not usable. Waiting does not help; the message describes what does. The Secret
// is never overwritten.
var ErrInvalidSecret = errors.New("the Secret of the serving CA is not usable")

func invalidSecret(namespace, reason string) error {
	return fmt.Errorf("%w: Secret %s/%s: %s; delete it and hub-apiserver makes a new CA, "+
		"or give hub-apiserver a certificate with --tls-cert-file and --tls-private-key-file",
		ErrInvalidSecret, namespace, SecretName, reason)
}

// decode parses the Secret. Its errors have one line and never contain data of the Secret.
func decode(secret *corev1.Secret) (*content, error) {
	invalid := func(reason string) (*content, error) { return nil, invalidSecret(secret.Namespace, reason) }
	if secret.Labels[labelManagedBy] != managedBy {
		return invalid(fmt.Sprintf("it was not made by hub-apiserver (label %s=%s is missing)", labelManagedBy, managedBy))
	}
	current, err := parseAuthority(secret.Data[keyCert], secret.Data[keyKey])
	if err != nil {
		return invalid(fmt.Sprintf("%s and %s: %v", keyCert, keyKey, err))
	}
	c := &content{current: current}
	c.bundle, err = parseCertificates(secret.Data[keyBundle])
	if err != nil {
		return invalid(fmt.Sprintf("%s: %v", keyBundle, err))
	}
	_, hasCert := secret.Data[keyNextCert]
	_, hasKey := secret.Data[keyNextKey]
	if !hasCert && !hasKey {
		return c, nil
	}
	c.next, err = parseAuthority(secret.Data[keyNextCert], secret.Data[keyNextKey])
	if err != nil {
		return invalid(fmt.Sprintf("%s and %s: %v", keyNextCert, keyNextKey, err))
	}
	c.nextFrom, err = time.Parse(time.RFC3339, secret.Annotations[annotationNextFrom])
	if err != nil {
		return invalid(fmt.Sprintf("the annotation %s is not a time in RFC 3339", annotationNextFrom))
	}
	return c, nil
}

// newSecret returns the Secret to create for c.
func newSecret(namespace string, c *content) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      SecretName,
			Labels:    map[string]string{labelManagedBy: managedBy},
		},
		Type: corev1.SecretTypeTLS,
	}
	return secret, encode(c, secret)
}

// encode writes c into secret and does not change other keys.
func encode(c *content, secret *corev1.Secret) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	key, err := c.current.keyPEM()
	if err != nil {
		return err
	}
	secret.Data[keyCert] = encodeCertificates(c.current.cert)
	secret.Data[keyKey] = key
	secret.Data[keyBundle] = encodeCertificates(c.bundle...)
	if c.next == nil {
		delete(secret.Data, keyNextCert)
		delete(secret.Data, keyNextKey)
		delete(secret.Annotations, annotationNextFrom)
		return nil
	}
	key, err = c.next.keyPEM()
	if err != nil {
		return err
	}
	secret.Data[keyNextCert] = encodeCertificates(c.next.cert)
	secret.Data[keyNextKey] = key
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationNextFrom, c.nextFrom.UTC().Format(time.RFC3339))
	return nil
}
