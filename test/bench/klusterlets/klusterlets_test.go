// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

func TestKlusterletBody(t *testing.T) {
	strict := json.NewDecoder(strings.NewReader(string(klusterletBody(7))))
	strict.DisallowUnknownFields()
	k := &operatorv1.Klusterlet{}
	if err := strict.Decode(k); err != nil {
		t.Fatal(err)
	}
	if k.AgentNamespace() != agentNamespace(7) || !strings.HasPrefix(agentNamespace(7), k.Name) || !strings.HasSuffix(agentNamespace(7), namespaceSuffix()) {
		t.Errorf("the namespace of %s is %s, and %s", k.Name, k.AgentNamespace(), agentNamespace(7))
	}
}

func TestShortTokens(t *testing.T) {
	strict := json.NewDecoder(strings.NewReader(string(shortTokens(11 * time.Minute)[0])))
	strict.DisallowUnknownFields()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := strict.Decode(policy); err != nil {
		t.Fatal(err)
	}
	if e := policy.Spec.Mutations[0].JSONPatch.Expression; !strings.Contains(e, "value: 660}") {
		t.Errorf("660 seconds are granted by %s", e)
	}
}

func TestContainerArgs(t *testing.T) {
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if args, err := containerArgs(o); err != nil || !strings.Contains(strings.Join(args, " "), "--agent-image=") {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := containerArgs(&unstructured.Unstructured{Object: map[string]any{}}); err == nil {
		t.Error("a Deployment without a container has arguments")
	}
}

func TestKlusterletFacts(t *testing.T) {
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	facts := klusterletFacts(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		condition("Applied", "True"), condition("ReadyToApply", "False"), condition("Available", "True")}}}})
	if len(facts) != 1 || !facts[factKlusterletApplied] {
		t.Errorf("%v", facts)
	}
}

func TestBySide(t *testing.T) {
	got := bySide(kit.CPUTimes{"managed: etcd 0": 1, "managed: etcd 1": 2, "hub-operator": 4, "etcd": 8})
	if got["managed: etcd"] != 3 || got["hub-operator"] != 4 || got["management: etcd"] != 8 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestBrought(t *testing.T) {
	all := &batch{Before: 10}
	for _, n := range []int{2, 4} {
		all.add(&batch{Count: 1, Applied: 1, Seconds: float64(n), OnManagement: map[string]int{"get": n}, OnManaged: map[string]int{"list": 1},
			CPU: map[string]float64{procHubOperator: float64(n)}})
	}
	all.each()
	if all.Count != 2 || all.Seconds != 3 || all.CPU[procHubOperator] != 3 || all.requestsEach() != 4 {
		t.Errorf("%+v: %v requests for each", all, all.requestsEach())
	}
}

// renewedAt returns the spread of tokens that were minted at one time and renewed after parts of their lifetimes.
func renewedAt(part func(n int) float64) *renewalSpread {
	const number, life = 240, 1000 * time.Second
	born := time.Unix(1_000_000, 0)
	var minted, renewed []grantedToken
	for n := range number {
		account := fmt.Sprint(n)
		minted = append(minted, grantedToken{account, born})
		renewed = append(renewed, grantedToken{account, born.Add(time.Duration(part(n) * float64(life)))}, grantedToken{account, born.Add(2 * life)})
	}
	return spreadOf(minted, append(renewed, grantedToken{"another", born}), life)
}

func TestSpreadOf(t *testing.T) {
	even := renewedAt(func(n int) float64 { return 0.7 + 0.1*(float64(n)+0.5)/240 })
	if even.Tokens != 240 || even.Renewed != 240 || even.Early+even.Late != 0 || even.burst() > 1.01 || even.MaxInSecond > 4 {
		t.Errorf("evenly: %+v, %v", even, even.burst())
	}
	together := renewedAt(func(int) float64 { return 0.75 })
	if together.Renewed != 240 || together.burst() != spreadParts || together.MaxInSecond != 240 {
		t.Errorf("together: %+v, %v", together, together.burst())
	}
	if early := renewedAt(func(int) float64 { return 0.5 }); early.Early != 240 {
		t.Errorf("early: %+v", early)
	}
	if late := renewedAt(func(int) float64 { return 0.9 }); late.Late != 240 {
		t.Errorf("late: %+v", late)
	}
	if none := spreadOf([]grantedToken{{"a", time.Unix(1, 0)}}, nil, time.Hour); none.Tokens != 1 || none.Renewed != 0 || none.burst() != 0 {
		t.Errorf("none: %+v", none)
	}
}

func TestJudgeKlusterlets(t *testing.T) {
	good := func() *Result {
		one := func(before int) *batch {
			return &batch{Count: 1, Applied: 1, Before: before, OnManaged: map[string]int{"create": 50}, CPU: map[string]float64{procHubOperator: 10}}
		}
		return &Result{All: &batch{Count: 200, Applied: 200}, Single: []*batch{one(10), one(213)}, RestCores: map[string]float64{},
			RestOnManaged: map[string]int{"watch roles": 3}, Renewals: renewedAt(func(n int) float64 { return 0.7 + 0.1*(float64(n)+0.5)/240 })}
	}
	short := func(k *Result) (n int) {
		var all kit.Targets
		k.Judge(&all)
		for _, target := range all {
			if !target.Reached {
				n++
			}
		}
		return n
	}
	if n := short(good()); n != 0 {
		t.Errorf("%d targets are not reached", n)
	}
	for name, change := range map[string]func(*Result){
		"not all applied":  func(k *Result) { k.All.Applied-- },
		"more requests":    func(k *Result) { k.Single[1].OnManaged["create"] = 100 },
		"more CPU":         func(k *Result) { k.Single[1].CPU[procHubOperator] = 100 },
		"a get at rest":    func(k *Result) { k.RestOnManaged["get roles"] = 1 },
		"a burst":          func(k *Result) { k.Renewals = renewedAt(func(int) float64 { return 0.75 }) },
		"one not renewed":  func(k *Result) { k.Renewals.Renewed-- },
		"a lost condition": func(k *Result) { k.Lost = []string{"k0001: Applied=True"} },
	} {
		if k := good(); true {
			change(k)
			if n := short(k); n != 1 {
				t.Errorf("%s: %d targets are not reached", name, n)
			}
		}
	}
}
