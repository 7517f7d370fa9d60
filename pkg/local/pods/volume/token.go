// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Token is a token of the ServiceAccount of a pod. It becomes invalid with the pod.
type Token struct {
	Value           string
	Issued, Expires time.Time
}

// Due reports whether a new token is needed: when a fifth of its lifetime is left, or after a day.
func (t *Token) Due(now time.Time) bool {
	return now.Sub(t.Issued) > 24*time.Hour || now.After(t.Issued.Add(t.Expires.Sub(t.Issued)*4/5))
}

// RequestToken requests a token for a pod.
func RequestToken(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, want *corev1.ServiceAccountTokenProjection) (*Token, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: want.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if want.Audience != "" {
		request.Spec.Audiences = []string{want.Audience}
	}
	got, err := client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &Token{Value: got.Status.Token, Issued: time.Now(), Expires: got.Status.ExpirationTimestamp.Time}, nil
}
