// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/feedback"
	"github.com/clusterhub/clusterhub/pkg/work/ignorefields"
	"github.com/clusterhub/clusterhub/pkg/work/manifestconfig"
	"github.com/clusterhub/clusterhub/pkg/work/order"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

// world is a work, and a minimal cluster: a map of objects. Its agent does what the packages compute.
type world struct {
	t          *testing.T
	manifests  []*unstructured.Unstructured
	configs    []workv1.ManifestConfigOption
	generation int64
	raw        bool

	cluster map[workv1.ManifestResourceMeta]*unstructured.Unstructured
	// refuses has the error with which the cluster rejects a manifest, by name.
	refuses map[string]error
	// applied are the names of the objects that were sent to the cluster, in order.
	applied []string
	cache   *rules.Cache
	now     time.Time
	status  *workv1.ManifestWorkStatus
}

// newWorld parses manifests from YAML.
func newWorld(t *testing.T, manifests ...string) *world {
	w := &world{t: t, now: time.Unix(1_800_000_000, 0), status: &workv1.ManifestWorkStatus{}, cache: rules.NewCache(10),
		cluster: map[workv1.ManifestResourceMeta]*unstructured.Unstructured{}, refuses: map[string]error{}}
	return w.edit(manifests...)
}

// edit changes the manifests, and so the generation.
func (w *world) edit(manifests ...string) *world {
	w.t.Helper()
	w.generation++
	w.manifests = nil
	for _, text := range manifests {
		w.manifests = append(w.manifests, w.parse(text))
	}
	return w
}

func (w *world) parse(text string) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) configure(texts ...string) *world {
	w.t.Helper()
	w.configs = nil
	for _, text := range texts {
		var config workv1.ManifestConfigOption
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			w.t.Fatal(err)
		}
		w.configs = append(w.configs, config)
	}
	return w
}

// metaOf returns the metadata of any kind: all plurals end in s.
func metaOf(i int, o *unstructured.Unstructured) workv1.ManifestResourceMeta {
	kind := o.GroupVersionKind()
	return workv1.ManifestResourceMeta{Ordinal: int32(i), Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
		Resource: strings.ToLower(kind.Kind) + "s", Namespace: o.GetNamespace(), Name: o.GetName()}
}

func key(o *unstructured.Unstructured) workv1.ManifestResourceMeta { return metaOf(0, o) }

// sets merges a status, or other fields, into an object of the cluster.
func (w *world) sets(text string) {
	w.t.Helper()
	o := w.parse(text)
	have := w.cluster[key(o)]
	if have == nil {
		w.cluster[key(o)] = o
		return
	}
	for name, value := range o.Object {
		if name != "metadata" {
			have.Object[name] = value
		}
	}
}

func (w *world) gone(text string) { delete(w.cluster, key(w.parse(text))) }

// round does what an agent does: apply, read, write the status.
func (w *world) round() *world {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	r := status.Round{Generation: w.generation, Now: metav1.NewTime(w.now), Manifests: make([]status.Manifest, len(w.manifests))}
	w.applied = nil
	for _, i := range order.Apply(w.manifests) {
		m := &r.Manifests[i]
		m.Meta = metaOf(i, w.manifests[i])
		config := manifestconfig.For(&m.Meta, w.configs)
		m.Applied = &status.Applied{Err: w.apply(w.manifests[i], config.UpdateStrategy)}
		m.Seen = w.look(w.manifests[i], &config)
	}
	w.status = status.Next(w.status, r)
	return w
}

func (w *world) apply(manifest *unstructured.Unstructured, strategy workv1.UpdateStrategy) error {
	if err := w.refuses[manifest.GetName()]; err != nil {
		return err
	}
	have := w.cluster[key(manifest)]
	send := manifest
	switch {
	case strategy.Type == workv1.UpdateStrategyTypeReadOnly, strategy.Type == workv1.UpdateStrategyTypeCreateOnly && have != nil:
		return nil
	case strategy.Type == workv1.UpdateStrategyTypeServerSideApply && strategy.ServerSideApply != nil:
		p, err := ignorefields.Prepare(manifest, strategy.ServerSideApply.IgnoreFields)
		switch {
		case err != nil:
			return err
		case have == nil:
			send = p.Whole
		case p.Unchanged(have.GetAnnotations()):
			return nil
		default:
			send = p.Reduced
		}
	}
	w.applied = append(w.applied, send.GetName())
	if have == nil {
		w.cluster[key(manifest)] = send.DeepCopy()
		return nil
	}
	merge(have.Object, send.DeepCopy().Object)
	return nil
}

func merge(into, from map[string]any) {
	for name, value := range from {
		fields, isMap := value.(map[string]any)
		have, isThere := into[name].(map[string]any)
		if isMap && isThere {
			merge(have, fields)
			continue
		}
		into[name] = value
	}
}

func (w *world) look(manifest *unstructured.Unstructured, config *manifestconfig.Settings) *status.Seen {
	object := w.cluster[key(manifest)]
	if object == nil {
		return &status.Seen{Err: apierrors.NewNotFound(schema.GroupResource{}, manifest.GetName())}
	}
	s := &status.Seen{FeedbackRules: len(config.FeedbackRules) > 0}
	s.Feedback, s.FeedbackErr = feedback.Read(object, config.FeedbackRules, feedback.Options{Raw: w.raw})
	var err error
	s.Conditions, _, err = w.cache.Set(config.ConditionRules).Evaluate(w.t.Context(), object)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

var errRefused = errors.New("refused")

func describe(c *metav1.Condition) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s (%d)", c.Status, c.Reason, c.Message, c.ObservedGeneration)
}

// is checks a condition of the work.
func (w *world) is(condition, want string) *world {
	w.t.Helper()
	if got := describe(meta.FindStatusCondition(w.status.Conditions, condition)); got != want {
		w.t.Errorf("%s\ngot  %s\nwant %s", condition, got, want)
	}
	return w
}

// manifest checks a condition of a manifest.
func (w *world) manifest(i int, condition, want string) *world {
	w.t.Helper()
	if got := describe(w.find(i, condition)); got != want {
		w.t.Errorf("manifest %d, %s\ngot  %s\nwant %s", i, condition, got, want)
	}
	return w
}

func (w *world) find(i int, condition string) *metav1.Condition {
	return meta.FindStatusCondition(w.status.ResourceStatus.Manifests[i].Conditions, condition)
}

// values checks the feedback of a manifest: name=value.
func (w *world) values(i int, want ...string) *world {
	w.t.Helper()
	var got []string
	for _, v := range w.status.ResourceStatus.Manifests[i].StatusFeedbacks.Values {
		text := ""
		switch {
		case v.Value.Integer != nil:
			text = fmt.Sprint(*v.Value.Integer)
		case v.Value.String != nil:
			text = *v.Value.String
		case v.Value.JsonRaw != nil:
			text = *v.Value.JsonRaw
		}
		got = append(got, fmt.Sprintf("%s=%s", v.Name, text))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("manifest %d has the values %v, want %v", i, got, want)
	}
	return w
}
