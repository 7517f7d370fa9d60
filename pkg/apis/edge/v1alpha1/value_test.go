// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

func TestValue_WireFormat(t *testing.T) {
	for wire, want := range map[string]Value{
		`"amd64"`: {Type: ValueString, String: "amd64"},
		`""`:      {Type: ValueString},
		`7`:       {Type: ValueNumber, Number: 7},
		`-1.5`:    {Type: ValueNumber, Number: -1.5},
		`1e+300`:  {Type: ValueNumber, Number: 1e300},
		// The largest number to which all smaller ones are whole, and what is written of a larger one: it stays readable.
		`9007199254740992`:    {Type: ValueNumber, Number: 1 << 53},
		`1152921504606847000`: {Type: ValueNumber, Number: 1 << 60},
		`true`:                {Type: ValueBoolean, Boolean: true},
		`false`:               {Type: ValueBoolean},
		`["a","b,c"]`:         {Type: ValueList, List: []string{"a", "b,c"}},
		`[]`:                  {Type: ValueList, List: []string{}},
		`null`:                {},
		`"\u003ca\u003e"`:     {Type: ValueString, String: "<a>"},
	} {
		var got Value
		if err := json.Unmarshal([]byte(wire), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v", wire, got, err)
		}
		if back, err := json.Marshal(want); err != nil || string(back) != wire {
			t.Errorf("%+v is %s, %v", want, back, err)
		}
		data, err := cbor.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got = Value{}
		if err := cbor.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v in CBOR, %v", wire, got, err)
		}
	}
}

func TestValue_RejectsInvalid(t *testing.T) {
	for wire, says := range map[string]string{`{"a":1}`: "a value must be", `["a",1]`: "entry 1", `[["a"]]`: "entry 0", `1e999`: "",
		`9007199254740993`: "would become 9007199254740992", `-9007199254740993`: "in quotes", `9223372036854775807`: "would become 9223372036854776000"} {
		var got Value
		if err := json.Unmarshal([]byte(wire), &got); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", wire, got, err)
		}
	}
}

// A value that was read into a used one does not keep anything of that.
func TestValue_UnmarshalReplacesAll(t *testing.T) {
	v := Value{Type: ValueList, List: []string{"a"}}
	if err := json.Unmarshal([]byte("3"), &v); err != nil || !reflect.DeepEqual(v, Value{Type: ValueNumber, Number: 3}) {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestSpecs_FieldNamesOfOpenHorizon(t *testing.T) {
	const policy = `{"label":"l","description":"d","service":{"name":"web","org":"shop","arch":"*","clusterNamespace":"blue","serviceVersions":[` +
		`{"version":"1.0.0","priority":{"priority_value":1,"retries":2,"retry_durations":3,"verified_durations":4}}]},` +
		`"properties":[{"name":"a","value":1,"type":"int"}],"constraints":["b == c"],` +
		`"userInput":[{"serviceOrgid":"shop","serviceUrl":"web","serviceArch":"amd64","serviceVersionRange":"[1,2)","inputs":[{"name":"A","value":["x"]}]}]}`
	const pattern = `{"label":"l","services":[{"serviceUrl":"web","serviceOrgid":"shop","serviceArch":"amd64","serviceVersions":[{"version":"1.0.0"}]}],"clusterNamespace":"blue"}`
	const node = `{"nodeType":"cluster","pattern":"shop/all","properties":[{"name":"a","value":true}],` +
		`"deployment":{"properties":[{"name":"b","value":"x"}],"constraints":["c == d"]},"management":{}}`
	const service = `{"label":"l","documentation":"o","public":true,"url":"web","version":"1.0.0","arch":"amd64",` +
		`"userInput":[{"name":"A","label":"a","type":"int","defaultValue":"1"}],"clusterDeployment":{"operatorYamlArchive":"AAEC"}}`
	for wire, spec := range map[string]any{
		policy: &DeploymentPolicySpec{}, pattern: &DeploymentPatternSpec{}, node: &EdgeNodeSpec{}, service: &EdgeServiceSpec{},
	} {
		decoder := json.NewDecoder(strings.NewReader(wire))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(spec); err != nil {
			t.Errorf("%s: %v", wire, err)
		}
		if back, err := json.Marshal(spec); err != nil || string(back) != wire {
			t.Errorf("sent %s, got %s, %v", wire, back, err)
		}
	}
}
