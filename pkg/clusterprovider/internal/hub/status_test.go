// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func TestSetCondition_TruncatesAtCharacters(t *testing.T) {
	status := &v1alpha1.Status{}
	SetCondition(status, 1, metav1.Condition{Type: "A", Message: "x" + strings.Repeat("é", MaxMessage)})
	if got := status.Conditions[0].Message; len(got) != MaxMessage-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, which end with %q", len(got), got[len(got)-3:])
	}
}
