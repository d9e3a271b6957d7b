{{- define "cadastre.name" -}}
{{- regexReplaceAll "[-.]+$" (default .Chart.Name .Values.nameOverride | trunc 40) "" -}}
{{- end -}}

{{/*
The beginning of all names. 40 characters leave room for what follows. Names of releases may have dots and begin
with a digit, those of Services may not.
*/}}
{{- define "cadastre.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $isNamed := contains (include "cadastre.name" .) .Release.Name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name (include "cadastre.name" .)) $isNamed -}}
{{- end -}}
{{- $name = regexReplaceAll "^([0-9])" $name "c-${1}" | replace "." "-" | trunc 40 -}}
{{- regexReplaceAll "-+$" $name "" -}}
{{- end -}}

{{/* What selects the pods of this release, and of one process where `component` is set. */}}
{{- define "cadastre.selector" -}}
app.kubernetes.io/name: {{ include "cadastre.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "cadastre.labels" -}}
{{ include "cadastre.selector" . }}
app.kubernetes.io/part-of: cadastre
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object. root; optionally suffix or name, component, namespace ("" for none), labels, annotations. */}}
{{- define "cadastre.metadata" -}}
name: "{{ if .name }}{{ .name }}{{ else }}{{ include "cadastre.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}{{ end }}"
{{- with hasKey . "namespace" | ternary .namespace .root.Release.Namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- include "cadastre.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "cadastre.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cadastre.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (printf "%s-site" (include "cadastre.fullname" .)) -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "cadastre.keysSecret" -}}
{{- include "cadastre.fullname" . }}-keys
{{- end -}}

{{/* Of a credential (root, value, file): the Secret and the key that have it, as JSON. */}}
{{- define "cadastre.secretReference" -}}
{{- $value := get .root.Values.secrets .value -}}
{{- $generated := and .root.Values.secrets.generateKeys (not $value.name) (has .value (list "secretKey" "keyRing" "metricsToken")) -}}
{{- $name := $value.name | default (ternary (include "cadastre.keysSecret" .root) .root.Values.secrets.existingSecret $generated) -}}
{{- if not $name -}}
{{- fail (printf "secrets.%s.name or secrets.existingSecret has to name a Secret" .value) -}}
{{- end -}}
{{- dict "name" $name "key" ($value.key | default .file) | toJson -}}
{{- end -}}

{{/* The volume of the credentials: the existing Secret as it is, where it has all of them by their names. */}}
{{- define "cadastre.secretsVolume" -}}
{{- $root := . -}}
{{- $existing := .Values.secrets.existingSecret -}}
{{- $files := dict "databaseUrl" "DATABASE_URL" "redisUrl" "REDIS_URL" "secretKey" "SECRET_KEY" "keyRing" "IPAM_KEY_RING" -}}
{{- if .Values.monitoring.enabled -}}
{{- $_ := set $files "metricsToken" "IPAM_METRICS_TOKEN" -}}
{{- end -}}
{{- $others := list -}}
{{- range $value, $file := $files -}}
{{- $reference := include "cadastre.secretReference" (dict "root" $root "value" $value "file" $file) | fromJson -}}
{{- if or (ne $reference.name $existing) (ne $reference.key $file) -}}
{{- $item := dict "key" $reference.key "path" $file -}}
{{- $others = append $others (dict "secret" (dict "name" $reference.name "items" (list $item))) -}}
{{- end -}}
{{- end -}}
name: secrets
{{- if $others }}
projected:
  defaultMode: 0440
  sources:
  {{- with $existing }}
  - secret: {name: {{ . | quote }}}
  {{- end }}
  {{- toYaml $others | nindent 2 }}
{{- else }}
secret: {secretName: {{ $existing | quote }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* Settings that all processes have. */}}
{{- define "cadastre.settings" -}}
{{- range $name := list "DATABASE_URL" "REDIS_URL" "SECRET_KEY" "IPAM_KEY_RING" }}
{{ $name }}_FILE: /etc/cadastre/secrets/{{ $name }}
{{- end }}
ALLOWED_HOSTS: {{ prepend (.Values.extraHosts | default list) .Values.host | join "," | quote }}
CSRF_TRUSTED_ORIGINS: {{ printf "https://%s" .Values.host | quote }}
{{- with .Values.settings }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cadastre.webhooksCertificate" -}}
{{- .Values.webhooks.certificate.secretName | default (printf "%s-webhooks-tls" (include "cadastre.fullname" .)) -}}
{{- end -}}

{{/* The port of web pods and of their Service. */}}
{{- define "cadastre.webScheme" -}}
{{- ternary "https" "http" .Values.web.tls.enabled -}}
{{- end -}}
{{- define "cadastre.webServicePort" -}}
{{- .Values.web.service.port | default (ternary 443 80 .Values.web.tls.enabled) -}}
{{- end -}}
