// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hzn

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

var archive = base64.StdEncoding.EncodeToString([]byte(gzipped + "rest"))

var options = Options{
	Name: "web", Namespace: "shop", Namespaces: map[string]string{"Acme_Corp": "acme"},
	Variable: func(name string) (string, bool) { return "1.0.0", name == "VERSION" },
	Archive: func(path string) ([]byte, error) {
		switch path {
		case "op.tar.gz":
			return []byte(gzipped + "rest"), nil
		case "secrets.txt":
			return []byte("hunter2"), nil
		}
		return nil, errors.New("there is no such file")
	},
}

// TestRead checks the objects of a file, and the fields of its notes.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		what  string
		kind  Kind
		file  string
		want  string
		notes []string
	}{
		{
			"a node policy with overlays", Node,
			`{"label":"l","properties":[{"name":"a","value":1,"type":"int"},{"name":"openhorizon.arch","value":"amd64"},{"name":"a","value":2}],
			 "constraints":["x > 15"],
			 "deployment":{"properties":[{"name":"openhorizon.kubernetesNamespace","value":"mine"},{"name":"b","value":true}],"constraints":["y == z"]},
			 "management":{"constraints":[]}}`,
			`{"kind":"EdgeNode","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"web"},"spec":{"label":"l","properties":[{"name":"a","value":1,"type":"int"}],` +
				`"constraints":["x \u003e 15"],"deployment":{"properties":[{"name":"b","value":true}],"constraints":["y == z"]},"management":{}},"status":{}}`,
			[]string{"deployment.properties[0]", "properties[1]", "properties[2]"},
		},
		{
			"a list of nodes", Node,
			`{"Acme_Corp/c1":{"name":"c1","token":"hunter2","nodeType":"cluster","clusterNamespace":"blue","isNamespaceScoped":true,"pattern":"Acme_Corp/All_Shops","arch":"amd64"}}`,
			`{"kind":"EdgeNode","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"c1"},"spec":{"nodeType":"cluster","pattern":"acme/all-shops"},"status":{}}`,
			[]string{"Acme_Corp/c1.arch", "Acme_Corp/c1.clusterNamespace", "Acme_Corp/c1.isNamespaceScoped", "Acme_Corp/c1.token"},
		},
		{
			"a service definition with a file, a variable and comments", Service,
			`/* of the team */ {"org":"Acme_Corp","url":"web // not a comment","version":"${VERSION}","arch":"amd64", // the only one
			 "public":true,"sharable":"multiple","requiredServices":[],"matchHardware":{},"documentation":"",
			 "userInput":[{"name":"A","label":"","type":"int","defaultValue":3}],"deployment":"","deploymentSignature":"",
			 "clusterDeployment":{"operatorYamlArchive":"op.tar.gz"},"clusterDeploymentSignature":"c2lnbg=="}`,
			`{"kind":"EdgeService","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"web-not-a-comment-1-0-0-amd64--` + "HASH" + `","namespace":"acme"},` +
				`"spec":{"public":true,"url":"web // not a comment","version":"1.0.0","arch":"amd64","userInput":[{"name":"A","type":"int","defaultValue":"3"}],` +
				`"clusterDeployment":{"operatorYamlArchive":"` + archive + `"}},"status":{}}`,
			[]string{"clusterDeploymentSignature", "userInput[0].defaultValue"},
		},
		{
			"a published service", Service,
			`{"shop/web_1.0.0_amd64":{"owner":"shop/me","label":"web","url":"web","version":"1.0.0","arch":"amd64","sharable":"singleton",
			 "requiredServices":[{"url":"db","org":"shop"}],"deployment":"{\"services\":{\"web\":{}}}",
			 "clusterDeployment":"{\"metadata\":{\"namespace\":\"x\"},\"mmsPVC\":{\"enable\":true},\"operatorYamlArchive\":\"` + archive + `\"}","lastUpdated":"x"}}`,
			`{"kind":"EdgeService","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"web--1.0.0--amd64","namespace":"shop"},` +
				`"spec":{"label":"web","url":"web","version":"1.0.0","arch":"amd64","deployment":{"services":{"web":{}}},"clusterDeployment":{"operatorYamlArchive":"` + archive + `"}},"status":{}}`,
			[]string{
				"shop/web_1.0.0_amd64.clusterDeployment.metadata", "shop/web_1.0.0_amd64.clusterDeployment.mmsPVC", "shop/web_1.0.0_amd64.deployment",
				"shop/web_1.0.0_amd64.requiredServices", "shop/web_1.0.0_amd64.sharable",
			},
		},
		{
			"a deployment policy", Policy,
			`{"label":"l","service":{"name":"web","org":"Acme_Corp","arch":"*","clusterNamespace":"blue","nodeHealth":{"missing_heartbeat_interval":60},
			   "serviceVersions":[{"version":"2.0.0","priority":{"priority_value":1,"retries":2,"retry_durations":3,"verified_durations":4},"upgradePolicy":{}},{"version":"1.0.0","priority":{}}]},
			 "properties":[{"name":"p","value":"true","type":"boolean"},{"name":"q","value":"1.5","type":"float"}],"constraints":["a == b"],
			 "userInput":[{"serviceOrgid":"Acme_Corp","serviceUrl":"web","serviceArch":"*","serviceVersionRange":"[1,2)","inputs":[{"name":"A","value":["x"]},{"name":"B","value":1}]}],
			 "secretBinding":[{"serviceUrl":"web","secrets":[{"a":"b"}]}],"colour":"red"}`,
			`{"kind":"DeploymentPolicy","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"web","namespace":"shop"},"spec":{"label":"l",` +
				`"service":{"name":"web","org":"acme","arch":"*","clusterNamespace":"blue","serviceVersions":[{"version":"2.0.0","priority":{"priority_value":1,"retries":2,"retry_durations":3,"verified_durations":4}},{"version":"1.0.0"}]},` +
				`"properties":[{"name":"p","value":true,"type":"boolean"},{"name":"q","value":1.5,"type":"float"}],"constraints":["a == b"],` +
				`"userInput":[{"serviceOrgid":"acme","serviceUrl":"web","serviceArch":"*","serviceVersionRange":"[1,2)","inputs":[{"name":"A","value":["x"]},{"name":"B","value":1}]}]},"status":{"nodes":{"reached":0,"selected":0,"placed":0,"running":0,"failed":0}}}`,
			[]string{"colour", "properties[0].value", "properties[1].value", "secretBinding", "service.nodeHealth"},
		},
		{
			"a pattern", Pattern,
			`{"name":"ignored","org":"Acme_Corp","public":true,"clusterNamespace":"blue","agreementProtocols":[{"name":"Basic"}],
			 "services":[{"serviceURL":"web","serviceOrgid":"shop","serviceArch":"amd64","agreementLess":true,"dataVerification":{"enabled":true},
			   "serviceVersions":[{"version":"1.0.0","deployment_overrides":{"a":1}}]}]}`,
			`{"kind":"DeploymentPattern","apiVersion":"edge.clusterhub.dev/v1alpha1","metadata":{"name":"web","namespace":"acme"},"spec":{` +
				`"services":[{"serviceUrl":"web","serviceOrgid":"shop","serviceArch":"amd64","serviceVersions":[{"version":"1.0.0"}]}],"clusterNamespace":"blue"},` +
				`"status":{"nodes":{"reached":0,"selected":0,"placed":0,"running":0,"failed":0}}}`,
			[]string{"public", "services[0].agreementLess", "services[0].dataVerification", "services[0].serviceVersions[0].deployment_overrides"},
		},
	} {
		if kind, err := Detect([]byte(c.file)); err != nil || kind != c.kind {
			t.Errorf("%s: is a %s, %v", c.what, kind, err)
		}
		result, err := Read(c.kind, []byte(c.file), options)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		data, err := json.Marshal(result.Objects[0])
		if err != nil {
			t.Fatal(err)
		}
		want, rest, hashed := strings.Cut(c.want, "HASH")
		if got := string(data); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, rest) || !hashed && got != c.want || len(result.Objects) != 1 {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
		var fields []string
		for _, note := range result.Notes {
			fields = append(fields, note.Field)
			if strings.Contains(note.String(), "hunter2") {
				t.Errorf("%s: a note has a secret: %s", c.what, note)
			}
		}
		slices.Sort(fields)
		if !slices.Equal(fields, c.notes) {
			t.Errorf("%s: notes about %q, want %q", c.what, fields, c.notes)
		}
	}
}

func TestRead_Errors(t *testing.T) {
	service := func(rest string) string { return `{"url":"web","version":"1.0.0","arch":"amd64",` + rest + `}` }
	for file, c := range map[string]struct {
		kind Kind
		says string
	}{
		`[]`:                   {Node, "one object in JSON"},
		`null`:                 {Node, "one object in JSON"},
		`{"properties":"a"}`:   {Node, "properties: must be a list"},
		`{"properties":["a"]}`: {Node, "properties[0]: must be an object"},
		`{"constraints":[1]}`:  {Node, "constraints[0]: must be a string"},
		`{"label":1}`:          {Node, "label: must be a string"},
		`{"label":"$USER"}`:    {Node, "the variable USER"},
		`{"properties":[{"name":"a","value":{"b":1}}]}`:       {Node, "properties[0].value: a value must be"},
		`{"a/c.1":{"properties":[]}}`:                         {Node, "must have the name of a ManagedCluster"},
		`{"a/c1":{"properties":[]},"b/c1":{"properties":[]}}`: {Node, "becomes /c1 as a/c1 does"},
		`{"url":"web"}`:                                                      {Service, "version: must be there"},
		service(`"org":"Other_Corp"`):                                        {Service, `"Other_Corp" cannot be the name of a namespace`},
		service(`"deployment":"x"`):                                          {Service, "deployment: must be an object"},
		service(`"clusterDeployment":{"secrets":{}}`):                        {Service, "operatorYamlArchive: must be the archive"},
		service(`"clusterDeployment":{"operatorYamlArchive":"none"}`):        {Service, "there is no such file"},
		service(`"clusterDeployment":{"operatorYamlArchive":"secrets.txt"}`): {Service, "is neither a tar.gz in base64"},
		`{"label":"l"}`:                                                      {Policy, "service: must be there"},
		`{"service":{"serviceVersions":[{"version":"1","priority":{"priority_value":1.5}}]}}`: {Policy, "priority_value: must be a number without fraction"},
		`{"service":{"serviceVersions":[{"version":"1","priority":{"retries":1e300}}]}}`:      {Policy, "retries: must be a number without fraction"},
		`{"services":[],"org":"shop","name":"x"}`:                                             {"policies", "the kind of the file"},
		`{"a": /* not ended`: {Node, "one object in JSON"},
		`{"label":"` + strings.Repeat("x", MaxFile) + `"}`: {Node, "may have"},
	} {
		result, err := Read(c.kind, []byte(file), options)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.100s: %v, %v, want %q", file, result, err, c.says)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.100s: an error has a secret", file)
		}
	}
	if _, err := Detect([]byte(`{"a":1}`)); err == nil {
		t.Error("anything is a file of hzn")
	}
	if _, err := Read(Policy, []byte(`{"service":{"name":"web"}}`), Options{}); err == nil || !strings.Contains(err.Error(), "has no name for the object") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := Read(Service, []byte(service(`"clusterDeployment":{"operatorYamlArchive":"op.tar.gz"}`)), Options{}); err == nil || !strings.Contains(err.Error(), "files are not read here") {
		t.Errorf("without files: %v", err)
	}
}

func TestReadServicePolicy(t *testing.T) {
	policy, notes, err := ReadServicePolicy([]byte(`{"label":"l","properties":[{"name":"a","value":"b"}],"constraints":["openhorizon.memory > 100"]}`), options)
	if err != nil || len(policy.Properties) != 1 || len(policy.Constraints) != 1 || len(notes) != 1 || notes[0].Field != "label" {
		t.Errorf("got %+v, %v, %v", policy, notes, err)
	}
	if _, _, err := ReadServicePolicy([]byte(`{"properties":1}`), options); err == nil {
		t.Error("a number is read as properties")
	}
}

// A variable in a value is not expanded: the user who gave the value did not ask for another.
func TestRead_ExpandsVariablesOnce(t *testing.T) {
	o := options
	o.Variable = func(name string) (string, bool) { return "$OTHER", name == "ONE" }
	result, err := Read(Node, []byte(`{"label":"$ONE costs $5","properties":[]}`), o)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := json.Marshal(result.Objects[0]); !strings.Contains(string(data), `"$OTHER costs $5"`) {
		t.Errorf("got %s", data)
	}
}

// A variable without quotes has one value, which cannot contain other parts of the file.
func TestRead_UnquotedVariables(t *testing.T) {
	const file = `{"properties":[{"name":"a$N","value":$N},{"name":"b","value":${YES},"type":"bool"},{"name":"c","value":"$N","type":"int"}]} // $COMMENT`
	values := map[string]string{"N": "9007199254740991", "YES": "true"}
	o := options
	o.Variable = func(name string) (string, bool) { value, ok := values[name]; return value, ok }
	if kind, err := Detect([]byte(file)); err != nil || kind != Node {
		t.Errorf("it is a %s, %v", kind, err)
	}
	result, err := Read(Node, []byte(file), o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result.Objects[0])
	want := `"properties":[{"name":"a9007199254740991","value":9007199254740991},{"name":"b","value":true,"type":"boolean"},{"name":"c","value":9007199254740991,"type":"int"}]`
	if err != nil || !strings.Contains(string(data), want) {
		t.Errorf("got %s, %v", data, err)
	}
	for _, value := range []string{"", "x", `1,"constraints":["a == b"]`, `{"b":1}`, "[1]", "null", "1 2", "$N", "NaN", "9007199254740993"} {
		values["N"] = value
		if result, err := Read(Node, []byte(`{"properties":[{"name":"a","value":$N}]}`), o); err == nil || !strings.Contains(err.Error(), "properties[0].value") {
			t.Errorf("%s: %v, %v", value, result, err)
		}
	}
	for file, says := range map[string]string{
		`{"label":$OTHER}`: "label: has the variable OTHER, which has no value", `{"label":"l",$N:1}`: "in place of the name", `{"label":$}`: "one object in JSON",
		`{"label":$N"l"}`: "one object in JSON", `{"properties":[{"name":"c","value":"9007199254740993","type":"int"}]}`: "would become 9007199254740992",
	} {
		if result, err := Read(Node, []byte(file), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v, want %s", file, result, err, says)
		}
	}
}

// Files with values of variables are not policies, patterns or services, and are recognized as such.
func TestDetect_UserInput(t *testing.T) {
	for _, file := range []string{
		`{"global":[],"services":[{"org":"a","url":"web","versionRange":"[0.0.0,INFINITY)","variables":{"A":1}}]}`,
		`{"services":[{"org":"a","url":"web","variables":{"A":1}}]}`,
		`[{"serviceOrgid":"a","serviceUrl":"web","serviceArch":"amd64","inputs":[{"name":"A","value":1}]}]`,
	} {
		if kind, err := Detect([]byte(file)); err == nil || !strings.Contains(err.Error(), "file of user input") {
			t.Errorf("%s: %s, %v", file, kind, err)
		}
	}
	if _, err := Detect([]byte(`[{"name":"a"}]`)); err == nil || strings.Contains(err.Error(), "user input") {
		t.Errorf("another list: %v", err)
	}
}

// One version that is tried twice, as in hzn's documentation, is in the list once, at its first position.
func TestRead_DuplicateVersion(t *testing.T) {
	result, err := Read(Policy, []byte(`{"service":{"name":"web","serviceVersions":[{"version":"2.0.0"},{"version":"1.0.0","priority":{"priority_value":3,"retries":1}},
		{"version":"1.0.0","priority":{"priority_value":2,"retries":5}},{"version":"2.0.0","priority":{"priority_value":1}},{"version":"1.0.0"}]}}`), options)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(result.Objects[0])
	want := `"serviceVersions":[{"version":"2.0.0","priority":{"priority_value":1}},{"version":"1.0.0","priority":{"priority_value":2,"retries":5}}]`
	if !strings.Contains(string(data), want) || len(result.Notes) != 3 || result.Notes[0].Field != "service.serviceVersions[2]" {
		t.Errorf("got %s, %v", data, result.Notes)
	}
}

func TestWithoutComments(t *testing.T) {
	for file, want := range map[string]string{
		`a/**/b`:         `a    b`,
		"a//x\nb":        "a    b",
		"a/*\n//*/b":     "a       b",
		`"/*a*/" /*"*/1`: `"/*a*/"      1`,
		`"\"//" //x`:     `"\"//"    `,
		`"\\"/*x*/1`:     `"\\"     1`,
		`/`:              `/`,
		`/*`:             `/*`,
		`/*/1`:           `/*/1`,
	} {
		if got := string(withoutComments([]byte(file))); got != want {
			t.Errorf("%q is %q, want %q", file, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"service":{"name":"web","serviceVersions":[{"version":"1"}]}}`)
	f.Add(`{"a/b":{"services":[{"serviceUrl":"web"}]}}`)
	f.Add(`{"url":"a","version":"$VERSION","arch":"c","clusterDeployment":"{}"} // x`)
	f.Fuzz(func(t *testing.T, file string) {
		for _, kind := range Kinds {
			result, err := Read(kind, []byte(file), options)
			if (err == nil) != (result != nil) {
				t.Errorf("%v and %v", result, err)
			}
			if err != nil {
				continue
			}
			for _, object := range result.Objects {
				if _, err := json.Marshal(object); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
