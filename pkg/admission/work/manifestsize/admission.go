// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestsize bounds the manifests of works, and of the templates of replica sets, of which works are made.
package manifestsize

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ManifestWorkSize"
	// DefaultMost is how many bytes manifests may have when no flag says otherwise. It is upstream's limit.
	DefaultMost = 512_000
	// LeastMost is the lower bound of the flag: it lets a small object in.
	LeastMost = 1_024
	// GreatestMost is the upper bound of the flag. A work that has the largest status, too (512,000 bytes), has 96 KiB left for all else below
	// the bound of ObjectSize, which is below what etcd takes.
	GreatestMost = 700_000
	// told is how many of the largest manifests are named.
	told = 3
)

// CheckMost is what is wrong with a value of the flag.
func CheckMost(most int) error {
	if most < LeastMost || most > GreatestMost {
		return fmt.Errorf("must be from %d to %d bytes, so that etcd has room for the work with its status, not %d", LeastMost, GreatestMost, most)
	}
	return nil
}

// Plugin refuses manifests that are too large together. Those that were stored under another limit may stay, and get smaller.
type Plugin struct {
	*admission.Handler
	// Most is how many bytes the manifests have at most, all together, as JSON.
	Most int
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin with the default.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), Most: DefaultMost}
}

// Validate implements admission.ValidationInterface. It looks at every subresource: what is stored counts.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	w, old, err := permission.Objects[work.ManifestWork](a, work.Resource("manifestworks"))
	if err != nil {
		return err
	}
	if w != nil {
		return p.check(a, "ManifestWork", w.Spec.Workload.Manifests, old.Spec.Workload.Manifests, field.NewPath("spec"))
	}
	s, before, err := permission.Objects[work.ManifestWorkReplicaSet](a, work.Resource("manifestworkreplicasets"))
	if s == nil {
		return err
	}
	return p.check(a, "ManifestWorkReplicaSet", s.Spec.ManifestWorkTemplate.Workload.Manifests,
		before.Spec.ManifestWorkTemplate.Workload.Manifests, field.NewPath("spec", "manifestWorkTemplate"))
}

// check answers in upstream's words, with a 400, on which its clients rely.
func (p *Plugin) check(a admission.Attributes, kind string, manifests, old []work.Manifest, spec *field.Path) error {
	size := sizeOf(manifests)
	if size <= p.Most || size <= sizeOf(old) {
		return nil
	}
	refusal := apierrors.NewInvalid(schema.GroupKind{Group: work.GroupName, Kind: kind}, a.GetName(), field.ErrorList{field.Forbidden(spec.Child("workload", "manifests"), fmt.Sprintf(
		"the size of manifests is %d bytes which exceeds the %d limit: the largest are %s; divide them among several works",
		size, p.Most, largest(manifests)))})
	refusal.ErrStatus.Code, refusal.ErrStatus.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	return refusal
}

func sizeOf(manifests []work.Manifest) int {
	size := 0
	for i := range manifests {
		size += len(manifests[i].Raw)
	}
	return size
}

// largest names the largest manifests.
func largest(manifests []work.Manifest) string {
	indexes := make([]int, len(manifests))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return len(manifests[b].Raw) - len(manifests[a].Raw) })
	var names []string
	for _, i := range indexes[:min(told, len(indexes))] {
		name := ""
		m := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifests[i].Raw, &m); err == nil {
			name = " " + shortened(m.Kind) + " " + shortened(m.Namespace) + "/" + shortened(m.Name)
		}
		names = append(names, fmt.Sprintf("manifests[%d]%s (%d bytes)", i, name, len(manifests[i].Raw)))
	}
	return strings.Join(names, ", ")
}

func shortened(name string) string { return name[:min(len(name), validation.DNS1123LabelMaxLength)] }
