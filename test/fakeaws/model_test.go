// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
)

// raw sends a signed request that the SDK would not send.
func (w *world) raw(t *testing.T, service, method, path, body string) (int, string) {
	t.Helper()
	root := w.hub.Root()
	r := must(http.NewRequestWithContext(t.Context(), method, w.URL()+path, strings.NewReader(body)))(t)
	if service != "eks" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: root.AccessKeyID, SecretAccessKey: root.SecretAccessKey},
		r, api.HexHash([]byte(body)), service, region, time.Now())
	noError(t, nil, err)
	resp := must(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	answer := must(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header.Get("X-Amzn-Errortype") + string(answer)
}

// TestModel_InvalidRequestsAreRejected verifies that requests that AWS would reject are rejected, with one case for each kind of rule in
// AWS's models.
func TestModel_InvalidRequestsAreRejected(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	long := strings.Repeat("a", 65)
	iamQuery := "Version=2010-05-08&Action="
	for name, tc := range map[string]struct{ service, method, path, body, want string }{
		"required":       {"iam", "POST", "/", iamQuery + "GetRole", "<Code>ValidationError</Code><Message>1 validation error(s) detected: Value null at &#39;RoleName&#39;"},
		"length":         {"iam", "POST", "/", iamQuery + "GetRole&RoleName=" + long, "length less than or equal to 64"},
		"pattern":        {"iam", "POST", "/", iamQuery + "GetRole&RoleName=a%2Fb", "regular expression pattern"},
		"number":         {"iam", "POST", "/", iamQuery + "ListRoles&MaxItems=many", "must be a number"},
		"range":          {"iam", "POST", "/", iamQuery + "ListRoles&MaxItems=1001", "value less than or equal to 1000"},
		"unknown":        {"iam", "POST", "/", iamQuery + "GetRole&RoleName=r&Colour=red", "does not know: Colour"},
		"nested":         {"iam", "POST", "/", iamQuery + "TagRole&RoleName=r&Tags.member.1.Key=a", "Tags.member.1.Value"},
		"gap in a list":  {"iam", "POST", "/", iamQuery + "UntagRole&RoleName=r&TagKeys.member.2=a", "does not know: TagKeys.member.2"},
		"two faults":     {"iam", "POST", "/", iamQuery + "PutRolePolicy&RoleName=r", "2 validation error(s)"},
		"operation":      {"iam", "POST", "/", iamQuery + "DeleteAccount", "<Code>InvalidAction</Code>"},
		"version":        {"iam", "POST", "/", "Version=2020-01-01&Action=ListRoles", "<Code>InvalidAction</Code>"},
		"service":        {"s3", "GET", "/", "", "<Code>InvalidAction</Code>"},
		"STS for IAM":    {"sts", "POST", "/", "Version=2011-06-15&Action=ListRoles", "<Code>InvalidAction</Code>"},
		"session name":   {"sts", "POST", "/", "Version=2011-06-15&Action=AssumeRole&RoleArn=arn:aws:iam::1:role/r&RoleSessionName=a", "length greater than or equal to 2"},
		"JSON":           {"eks", "POST", "/clusters/hub/access-entries", "{", "InvalidParameterException"},
		"JSON type":      {"eks", "POST", "/clusters/hub/access-entries", `{"principalArn":1}`, "InvalidParameterException"},
		"JSON list":      {"eks", "POST", "/clusters/hub/access-entries", `{"principalArn":"a","kubernetesGroups":"g"}`, "must be a list"},
		"JSON unknown":   {"eks", "POST", "/clusters/hub/access-entries", `{"principalArn":"a","groups":["g"]}`, "not in AWS's model"},
		"JSON required":  {"eks", "POST", "/clusters/hub/access-entries", `{}`, "principalArn"},
		"JSON null":      {"eks", "POST", "/clusters/hub/access-entries", `{"principalArn":null}`, "principalArn"},
		"map":            {"eks", "POST", "/tags/arn", `{"tags":{"` + strings.Repeat("a", 129) + `":""}}`, "BadRequestException"},
		"URL parameter":  {"eks", "GET", "/clusters/hub/access-entries?maxResults=0", "", "greater than or equal to 1"},
		"path":           {"eks", "GET", "/clusters/hub/colour", "", "UnknownOperationException"},
		"method":         {"eks", "PATCH", "/clusters/hub", "", "UnknownOperationException"},
		"path parameter": {"eks", "GET", "/clusters/", "", "UnknownOperationException"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.hub.Roles()["r"].Tags)
			status, got := w.raw(t, tc.service, tc.method, tc.path, tc.body)
			if status != http.StatusBadRequest || !strings.Contains(got, tc.want) {
				t.Errorf("%d %s, want 400 with %s", status, got, tc.want)
			}
			if len(w.hub.Roles()["r"].Tags) != before || len(w.hub.AccessEntries(w.clusterARN)) != 0 {
				t.Error("it had an effect")
			}
		})
	}
}

func TestServer_LimitsBody(t *testing.T) {
	w := newWorld(t)
	status, _ := w.raw(t, "iam", "POST", "/", "Version=2010-05-08&Action=ListRoles&Marker="+strings.Repeat("a", maxBody))
	if status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
}
